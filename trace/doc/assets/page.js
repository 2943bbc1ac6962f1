/* Draws the plots of the page from the JSON in #plot-data. */
(() => {
'use strict';

const charts = JSON.parse(document.getElementById('plot-data').textContent);
const root = document.documentElement;
const drawn = new Set(); // plots that were painted at least once
const live = [];         // the uPlot of each plot, while it exists
const pad = n => String(n).padStart(2, '0');

// ---- numbers ----

const trim = (v, digits) => String(+v.toPrecision(digits)).replace('-', '\u2212');

// short writes tick labels: 250, 1.5k, 20M.
const short = (v, digits = 10) => {
	const a = Math.abs(v);
	if (a !== 0 && (a >= 1e15 || a < 1e-4)) return v.toExponential(Math.min(digits, 3)).replace(/\.?0+e/, 'e').replace('e+', 'e').replace('-', '\u2212');
	for (const [size, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
		if (a >= size) return trim(v / size, digits) + letter;
	}
	return trim(v, digits);
};

// value writes what is read off a plot: whole numbers whole, others with three digits.
const value = v => {
	const a = Math.abs(v);
	if (a !== 0 && (a >= 1e6 || a < 1e-4)) return short(v, 5);
	return v.toLocaleString('en-GB', {maximumSignificantDigits: Number.isInteger(v) ? 6 : 3}).replace('-', '\u2212');
};

// clock writes seconds as m:ss, h:mm:ss or days.
const clock = s => {
	const sign = s < 0 ? '\u2212' : '', t = Math.abs(s), whole = Math.floor(t + 1e-9), rest = t - whole;
	const day = Math.floor(whole / 86400), h = Math.floor(whole / 3600) % 24, m = Math.floor(whole / 60) % 60;
	const sec = pad(whole % 60) + (rest > 1e-3 ? rest.toFixed(2).slice(1) : '');
	if (day && t % 86400 === 0) return sign + day + ' d';
	if (day) return sign + day + ' d ' + pad(h) + ':' + pad(m) + (whole % 60 ? ':' + sec : '');
	return sign + (h ? h + ':' + pad(m) : m) + ':' + sec;
};

const unit = u => !u ? '' : u === '%' ? '%' : '\u202f' + u;

// ---- ticks ----

const clockSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

// steps are multiples of a round number, about count of them. They are counted
// out, not added up, so that no range can make this loop for ever.
const steps = (min, max, count, timed) => {
	const rough = (max - min) / Math.max(2, count), power = 10 ** Math.floor(Math.log10(rough));
	const marks = power === 1 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10]; // counts have no halves
	let step = marks.map(m => m * power).find(s => s >= rough * 0.9) || 10 * power;
	if (timed && step >= 1) step = clockSteps.find(s => s >= rough) || 86400 * Math.ceil(rough / 86400);
	const out = [], first = Math.ceil(min / step - 1e-9);
	for (let i = 0; i < 60 && (first + i) * step <= max + step * 1e-9; i++) out.push(+((first + i) * step).toPrecision(12));
	return out;
};

const decade = v => Math.round(Math.log10(v) * 1e9) / 1e9;

// logLabels are the multiples of a power of ten that have labels, from few to many,
// and how many decades for each label that is asked for they may have: within the
// first they are at ease, within the second there is room for them.
const logLabels = [
	[[1], Infinity, Infinity], [[1, 2, 5], 1 / 3, 2 / 3], [[1, 2, 3, 5, 7], 1 / 6, 1 / 4], [[1, 2, 3, 4, 5, 6, 7, 8, 9], 1 / 9, 1 / 9],
];
const fewLabels = 4; // do not tell how an axis runs

// logSteps are the multiples 1 to 9 of every power of ten within the range, and
// those among them that get a label, so that about count do. Where those would be
// fewer than fewLabels, closer ones are taken as far as there is room; within a
// decade, where that does not help, ordinary steps serve better.
const logSteps = (min, max, count) => {
	const span = decade(max) - decade(min);
	let best = [[], new Set()];
	for (const [digits, ease, room] of logLabels) {
		if (span > room * count || best[1].size >= fewLabels && span > ease * count) break;
		best = logMarks(min, max, count, digits);
	}
	if (best[1].size >= fewLabels || best[1].size >= 2 && span > 1) return best;
	let plain = steps(min, max, count, false);
	if (plain.length < fewLabels) plain = steps(min, max, 2 * count, false);
	return plain.length <= best[1].size ? best : [plain, new Set(plain)];
};

// logMarks are the multiples, and those of them that begin with one of the digits.
const logMarks = (min, max, count, digits) => {
	const lo = decade(min), hi = decade(max), span = hi - lo, every = Math.max(1, Math.ceil(span / count));
	const all = [], shown = new Set();
	for (let e = Math.floor(lo); e <= Math.ceil(hi); e++) {
		if (span > 8 && e % every) continue;
		for (let m = 1; m < (span > 8 ? 2 : 10); m++) {
			const v = Number(m + 'e' + e);
			if (v < min * (1 - 1e-9) || v > max * (1 + 1e-9)) continue;
			all.push(v);
			if (digits.includes(m) && (m > 1 || e % every === 0)) shown.add(v);
		}
	}
	return [all, shown];
};

// ---- ranges ----

const extent = lists => {
	let lo = Infinity, hi = -Infinity;
	for (const list of lists) for (const v of list) if (v != null) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
	return [lo, hi];
};

// xRange is all of the plot, or the part that was zoomed to.
const xRange = (c, data) => {
	let [lo, hi] = extent(c.k === 'bars' ? c.s.flatMap(s => [s.lo, s.hi]) : [data[0]]);
	const alone = c.k === 'bars' && data[0].length === 1; // a bar that would fill the plot
	const dots = c.k === 'points' || c.k === 'line' && c.s.some(s => s.x.length === 1); // that the edge would cut
	if (c.xn) {
		[lo, hi] = [0.5, c.xn.length + 0.5];
	} else if (c.lx) {
		const room = alone ? hi / lo : dots ? Math.max(1.02, (hi / lo) ** 0.02) : 1;
		[lo, hi] = lo === hi ? [lo / 2, hi * 2] : [lo / room, hi * room];
	} else {
		const room = lo === hi ? Math.abs(lo) / 2 || 1 : alone ? hi - lo : dots ? (hi - lo) * 0.02 : 0;
		[lo, hi] = [lo - room, hi + room];
	}
	const first = data[0][0], last = data[0][data[0].length - 1];
	return (u, min, max) => min >= lo && max <= hi && max > min && (min > first || max < last) ? [min, max] : [lo, hi];
};

// yRange has zero in it, unless the values would then be a thin band far from it.
const yRange = c => (u, min, max) => {
	if (c.yn) return [0.5, c.yn.length + 0.5];
	if (min == null || max == null) return c.ly ? [1, 10] : [0, 1];
	for (const m of c.m || []) if (m.a === 'y') { min = Math.min(min, m.v); max = Math.max(max, m.v); }
	if (c.ly) {
		const room = Math.max(1.1, (max / min) ** 0.06);
		return [min / (c.k === 'bars' ? Math.max(2, room) : room), max * room];
	}
	if (min === 0 && max === 0) return [0, 1];
	const whole = c.z || c.k === 'bars' || c.k === 'step' || min === max;
	if (min > 0 && (whole || min <= max / 2)) min = 0;
	if (max < 0 && (whole || max >= min / 2)) max = 0;
	const room = (max - min) * 0.06;
	return [min === 0 ? 0 : min - room, max === 0 ? 0 : max + room];
};

// ---- series ----

// prepare turns what is embedded into edges of bars and columns for uPlot.
const prepare = c => {
	if (c.k === 'lanes') return counts(c);
	for (const s of c.s) {
		if (c.k !== 'bars') continue;
		const half = s.w ? s.w[0] / 2 : 0;
		s.lo = s.h ? s.x : s.x.map(x => c.lx ? x / 10 ** half : x - half);
		s.hi = s.h || s.x.map(x => c.lx ? x * 10 ** half : x + half);
		s.mid = s.h ? s.x.map((x, i) => c.lx ? Math.sqrt(x * s.h[i]) : (x + s.h[i]) / 2) : s.x;
	}
	return c.s.length === 1 ? [c.s[0].mid || c.s[0].x, c.s[0].y] : uPlot.join(c.s.map(s => [s.mid || s.x, s.y]));
};

// counts are how many lanes each series of a timeline is in, wherever a bar begins or ends:
// what is read off it. The bars themselves are drawn by lanePaths.
const counts = c => {
	const xs = [...new Set(c.s.flatMap(s => [...s.x, ...s.h]))].sort((a, b) => a - b), place = new Map(xs.map((x, i) => [x, i]));
	return [xs, ...c.s.map(s => {
		const change = new Array(xs.length).fill(0);
		s.x.forEach((x, i) => { change[place.get(x)]++; change[place.get(s.h[i])]--; });
		let n = 0;
		return change.map(d => n += d);
	})];
};

// lanePaths are the bars of a series of a timeline: thick, or thin where nothing happens.
const lanePaths = s => u => {
	const path = new Path2D(), half = s.t ? 0.1 : 0.36, {min, max} = u.scales.x;
	for (let i = 0; i < s.x.length; i++) {
		if (s.h[i] < min || s.x[i] > max) continue;
		const x0 = u.valToPos(Math.max(s.x[i], min), 'x', true), x1 = u.valToPos(Math.min(s.h[i], max), 'x', true);
		const y0 = u.valToPos(s.y[i] - half, 'y', true), y1 = u.valToPos(s.y[i] + half, 'y', true);
		path.rect(x0, y0, Math.max(1, x1 - x0), y1 - y0);
	}
	return {stroke: null, fill: path};
};

const barPaths = s => u => {
	const path = new Path2D(), base = u.valToPos(u.scales.y.distr === 3 ? u.scales.y.min : 0, 'y', true);
	const {min, max} = u.scales.x;
	for (let i = 0; i < s.y.length; i++) {
		if (s.hi[i] < min || s.lo[i] > max) continue;
		const x0 = u.valToPos(Math.max(s.lo[i], min), 'x', true), x1 = u.valToPos(Math.min(s.hi[i], max), 'x', true);
		const y = u.valToPos(s.y[i], 'y', true), gap = x1 - x0 > 6 ? 2 : 0;
		path.rect(x0, Math.min(y, base), Math.max(1, x1 - x0 - gap), Math.abs(base - y));
	}
	return {stroke: null, fill: path};
};

// at is the point of series si that stands for x: the bar over it, the step it
// is on, or the nearest point of a line.
const at = (c, data) => (u, si, idx, x) => {
	const y = data[si];
	if (c.k === 'bars') {
		if (si === 0 || c.s.length === 1) return idx;
		const s = c.s[si - 1], i = s.lo.findIndex((lo, j) => lo <= x && x < s.hi[j]);
		return i < 0 ? null : data[0].indexOf(s.mid[i]);
	}
	if ((c.k === 'step' || c.k === 'lanes') && data[0][idx] > x && idx > 0) idx--;
	if (y[idx] !== undefined) return idx;
	let left = idx, right = idx;
	while (left >= 0 && y[left] === undefined) left--;
	if (c.k === 'step') return left < 0 ? null : left;
	while (right < y.length && y[right] === undefined) right++;
	if (left < 0 || right >= y.length) return left < 0 ? (right < y.length ? right : null) : left;
	return x - data[0][left] <= data[0][right] - x ? left : right;
};

const tint = (colour, share) => {
	const n = parseInt(colour.slice(1), 16);
	return `rgba(${n >> 16},${n >> 8 & 255},${n & 255},${share})`;
};

// area colours what is between a line and zero, and nothing where zero is not in
// sight: an area from anywhere else shows differences larger than they are.
const area = colour => u => {
	const {min, max, distr} = u.scales.y;
	return distr !== 3 && min <= 0 && max >= 0 ? colour : null;
};

// Series differ by more than their colour: lines by their dashes, points by being full or hollow.
const dashes = [undefined, [9, 4], [2, 4], [12, 4, 2, 4]], borders = ['solid', 'dashed', 'dotted', 'dashed'];

const seriesOptions = (c, css) => c.s.map((s, i) => {
	const colour = css(`--s${s.c || i % 6 + 1}`), alone = c.s.length === 1;
	const o = {label: s.n, stroke: colour, width: s.x.length > 1000 && c.k === 'step' ? 1 : 1.75, dash: dashes[i % 4], value: (u, v) => v == null ? '' : value(v) + unit(c.yu)};
	if (c.k === 'line') {
		Object.assign(o, {paths: uPlot.paths.linear(), fill: alone ? area(tint(colour, 0.1)) : undefined});
		if (s.x.length <= 60) o.points = {show: true, size: s.x.length === 1 ? 10 : 5, fill: colour};
	} else if (c.k === 'step') {
		Object.assign(o, {paths: uPlot.paths.stepped({align: 1}), fill: alone ? area(tint(colour, 0.12)) : undefined, points: {show: s.x.length === 1, size: 5, fill: colour}});
	} else if (c.k === 'lanes') {
		Object.assign(o, {paths: lanePaths(s), width: 0, fill: s.t ? tint(colour, 0.65) : colour, points: {show: false}});
	} else if (c.k === 'bars') {
		Object.assign(o, {paths: barPaths(s), width: 0, fill: tint(colour, alone ? 0.75 : 0.5), points: {show: false}});
	} else {
		Object.assign(o, {paths: () => null, points: i % 2 ? {show: true, size: s.x.length > 100 ? 6 : 8, width: 1.25, stroke: tint(colour, 0.9), fill: 'transparent'} : {show: true, size: s.x.length > 100 ? 5 : 7, width: 0, fill: tint(colour, 0.8)}});
	}
	return o;
});

// ---- plots ----

const xValue = (c, timed) => {
	if (c.xn) return v => c.xn[Math.round(v) - 1] || '';
	const bare = v => timed ? clock(v) : value(v), end = timed ? '' : unit(c.xu), one = v => bare(v) + end;
	if (c.k !== 'bars' || !c.s.some(s => s.h)) return v => v == null ? '' : one(v);
	const range = new Map();
	for (const s of c.s) if (s.h) s.mid.forEach((m, i) => range.set(m, bare(s.lo[i]) + ' \u2013 ' + one(s.hi[i])));
	return v => v == null ? '' : range.get(v) || one(v);
};

// named is an axis of names, in lines of what there is room for.
const named = (c) => ({
	size: 42, splits: () => c.xn.map((_, i) => i + 1),
	values: u => c.xn.map(name => {
		const letters = Math.max(1, Math.floor(u.bbox.width / devicePixelRatio / c.xn.length / 7));
		const clip = s => s.length > letters ? s.slice(0, Math.max(1, letters - 1)) + '\u2026' : s;
		if (name.length <= letters) return name;
		const at = name.search(/[ _-]/) + 1;
		return at ? clip(name.slice(0, at)) + '\n' + clip(name.slice(at)) : clip(name);
	}),
});

// laneNames is an axis of lanes.
const laneNames = c => ({
	splits: () => c.yn.map((_, i) => i + 1), values: () => c.yn, grid: {show: false},
	size: () => 16 + 7 * Math.max(2, ...c.yn.map(name => name.length)),
});

const axes = (c, css, timed) => {
	const axis = (log, timed, count, write) => {
		let shown; // of the last splits; null if all are
		return {
			stroke: css('--soft'), font: '12px system-ui, sans-serif', gap: 6, grid: {stroke: css('--faint'), width: 1}, ticks: {show: false},
			filter: (u, list) => list,
			splits: (u, i, min, max) => {
				if (!log) { shown = null; return steps(min, max, count(u), timed); }
				const [all, some] = logSteps(min, max, count(u));
				shown = some;
				return all;
			},
			values: (u, list) => list.map(v => !shown || shown.has(v) ? write(v) : ''),
		};
	};
	const percent = v => v === '%' ? '%' : '';
	return [
		{...axis(c.lx, timed, u => u.bbox.width / devicePixelRatio / 75, v => timed ? clock(v) : short(v) + percent(c.xu)), size: 28, ...c.xn && named(c)},
		{...axis(c.ly, false, u => u.bbox.height / devicePixelRatio / 38, v => short(v) + percent(c.yu)),
			size: (u, list) => 14 + 7 * Math.max(2, ...(list || []).map(v => v.length)), ...c.yn && laneNames(c)},
	];
};

const height = (c, width, box) => c.yn ? 44 + 20 * Math.max(2, c.yn.length) : box.closest('.first') ? (width > 500 ? 300 : 220) : width > 760 ? 300 : 240;

// marks are dashed lines with their labels: those of horizontal ones at the left edge or
// in the margin, those of vertical ones at the top, one under the other.
const marks = (c, css) => u => {
	const {ctx, bbox: {left, top, width, height}} = u, r = devicePixelRatio;
	const labels = [];
	let row = 0, above = [];
	ctx.save();
	ctx.font = `${11 * r}px system-ui, sans-serif`;
	ctx.textBaseline = 'alphabetic';
	ctx.setLineDash([4 * r, 4 * r]);
	ctx.lineWidth = r;
	for (const m of c.m || []) {
		if (m.s && u.series[m.s] && !u.series[m.s].show) continue;
		const at = u.valToPos(m.v, m.a, true), flat = m.a === 'y';
		if (flat ? at < top || at > top + height : at < left || at > left + width) continue;
		ctx.strokeStyle = ctx.fillStyle = css(m.s ? `--s${(m.s - 1) % 6 + 1}` : '--soft');
		ctx.beginPath();
		ctx.moveTo(flat ? left : at, flat ? at : top);
		ctx.lineTo(flat ? left + width : at, flat ? at : top + height);
		ctx.stroke();
		const end = at + 10 * r + ctx.measureText(m.t || '').width, xs = c.m.map(o => o.a === 'x' ? u.valToPos(o.v, 'x', true) : at);
		const after = flat || end < left + width && !xs.some(x => x > at && x < end);
		let x = left + 6 * r, y = Math.max(at - 3 * r, top + 9 * r);
		if (m.e) { // in the margin, beside the end of its line
			x = left + width + 4 * r;
			y = at + 2 * r;
		} else if (!flat) {
			x = at + (after ? 5 : -5) * r;
			y = top + (12 + 14 * row++) * r;
		}
		if (flat) {
			const other = above.find(o => Math.abs(o - y) < 12 * r);
			if (other !== undefined) y = (m.e ? other : at) + 11 * r; // under it, or under its own line
			above.push(y);
		}
		labels.push([m.t || '', x, y, after ? 'left' : 'right', ctx.fillStyle]);
	}
	// Labels come last, on a halo, so that no line runs through them.
	ctx.setLineDash([]);
	ctx.lineJoin = 'round';
	ctx.lineWidth = 4 * r;
	ctx.strokeStyle = css('--card');
	for (const [text, x, y, align, colour] of labels) {
		ctx.textAlign = align;
		ctx.fillStyle = colour;
		ctx.strokeText(text, x, y);
		ctx.fillText(text, x, y);
	}
	ctx.restore();
};

// markers show in the legend what a series looks like.
const markers = (c, css) => {
	const colour = i => i ? css(`--s${c.s[i - 1].c || (i - 1) % 6 + 1}`) : null, full = i => c.k === 'bars' || c.k === 'lanes' || c.k === 'points' && i % 2;
	return {width: (u, i) => c.k === 'bars' || c.k === 'lanes' ? 0 : 2, stroke: (u, i) => colour(i), dash: (u, i) => c.k === 'points' ? 'solid' : borders[(i - 1) % 4] || 'solid', fill: (u, i) => full(i) ? colour(i) : 'transparent'};
};

const build = (c, n) => {
	const box = document.getElementById(`plot-${n + 1}`), legend = box.parentElement.querySelector('.legend');
	const style = getComputedStyle(root), css = name => style.getPropertyValue(name).trim();
	const data = c.data, [lo, hi] = extent([data[0]]);
	const timed = c.xu === 's' && !c.lx && hi - lo > 180 && hi < 1e7; // beyond that they are dates, not durations
	box.textContent = legend.textContent = '';
	const width = box.clientWidth;
	const u = new uPlot({
		width, height: height(c, width, box), padding: [8, (c.m || []).some(m => m.e) ? 32 : 24, 0, 0],
		scales: {x: {time: false, distr: c.lx ? 3 : 1, range: xRange(c, data)}, y: {distr: c.ly ? 3 : 1, range: yRange(c), dir: c.yn ? -1 : 1}},
		axes: axes(c, css, timed),
		series: [{label: c.xl, value: (u, v) => x(v)}, ...seriesOptions(c, css)],
		cursor: {y: false, drag: {x: true, y: false}, dataIdx: at(c, data), points: {size: 7, show: c.k === 'bars' || c.k === 'lanes' ? false : undefined}},
		legend: {mount: (u, el) => legend.append(el), markers: markers(c, css)},
		hooks: {draw: [marks(c, css), () => { drawn.add(n); document.body.dataset.plotsDrawn = drawn.size; }]},
	}, data, box);
	const x = xValue(c, timed);
	if (c.s.length > 1) switches(u, legend);
	live[n] = u;
};

// switches lets the keyboard do what a click on a name of the legend does.
const switches = (u, legend) => {
	legend.querySelectorAll('.u-series th').forEach((th, i) => {
		if (!i) return;
		const told = () => th.setAttribute('aria-pressed', u.series[i].show);
		th.tabIndex = 0;
		th.setAttribute('role', 'button');
		th.addEventListener('keydown', e => {
			if (e.key !== 'Enter' && e.key !== ' ') return;
			e.preventDefault();
			u.setSeries(i, {show: !u.series[i].show});
			told();
		});
		th.addEventListener('click', told);
		told();
	});
};

// keys moves the pointer of a plot from point to point and says the values.
const keys = (box, n) => box.addEventListener('keydown', e => {
	const u = live[n];
	if (!u) return;
	const xs = u.data[0], now = u.cursor.idx == null ? -1 : u.cursor.idx;
	const jump = Math.max(1, Math.round(xs.length / 100));
	const to = {ArrowRight: now + jump, ArrowLeft: now < 0 ? xs.length - 1 : now - jump, Home: 0, End: xs.length - 1, Escape: -1}[e.key];
	if (to === undefined) return;
	e.preventDefault();
	const i = Math.min(xs.length - 1, Math.max(0, to));
	u.setCursor(e.key === 'Escape' ? {left: -10, top: -10} : {left: u.valToPos(xs[i], 'x'), top: 0});
	box.parentElement.querySelector('.spoken').textContent = e.key === 'Escape' ? '' : u.series
		.map((s, k) => { const j = u.cursor.idxs[k]; return s.label + ' ' + s.value(u, j == null ? null : u.data[k][j], k, j); }).join('; ');
});

const each = f => charts.forEach((c, n) => {
	try { f(c, n); } catch (err) {
		const box = document.getElementById(`plot-${n + 1}`), text = document.createElement('p');
		text.className = 'failed';
		text.textContent = 'This plot could not be drawn.';
		box.replaceChildren(text);
		reportError(err);
	}
});

const rebuild = () => each((c, n) => { if (live[n]) live[n].destroy(); live[n] = null; build(c, n); });

each((c, n) => {
	c.data = prepare(c);
	build(c, n);
	keys(document.getElementById(`plot-${n + 1}`), n);
});
if (typeof ResizeObserver !== 'undefined') {
	const fit = box => {
		const u = live[box.id.slice(5) - 1], width = box.clientWidth;
		if (u && width && width !== u.width && !root.classList.contains('print')) u.setSize({width, height: height(charts[box.id.slice(5) - 1], width, box)});
	};
	// In the next frame: resizing within the callback would make the observer report a loop.
	const sizes = new ResizeObserver(entries => requestAnimationFrame(() => entries.forEach(e => fit(e.target))));
	document.querySelectorAll('.plot').forEach(box => sizes.observe(box));
}
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', rebuild);
addEventListener('beforeprint', () => { root.classList.add('print'); rebuild(); });
addEventListener('afterprint', () => { root.classList.remove('print'); rebuild(); });
})();
