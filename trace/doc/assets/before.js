/* Runs before uPlot. */
(() => {
	'use strict';
	// Failures are counted where a test can read them.
	const failed = () => { document.body.dataset.errors = 1 + Number(document.body.dataset.errors || 0); };
	addEventListener('error', failed);
	addEventListener('unhandledrejection', failed);
	document.addEventListener('securitypolicyviolation', failed);
	// Canvases have at least two pixels for each of the screen's, so that plots are sharp on paper.
	const own = Object.getOwnPropertyDescriptor(window, 'devicePixelRatio');
	if (own && own.get && own.configurable) {
		Object.defineProperty(window, 'devicePixelRatio', {configurable: true, get: () => Math.max(2, own.get.call(window))});
	}
})();
