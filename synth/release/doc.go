// Package release makes releases of a trace in which no session is real: it counts the
// sessions of the trace in noisy tables, and draws fresh sessions from these.
//
//  1. [Fit] groups rows by the unit of privacy: a user, a session, or a request. Where the
//     source names no sessions, a session is the rows whose prompts share their first
//     blocks. What a session is, and what it adds, depends on its own rows alone.
//  2. Prefixes that many units share, the trunks, are selected by noisy counts.
//  3. Each unit adds a weight of 1 in all to each of up to 21 tables, however many
//     requests it has: of what a session has once, such as its first input, of its first
//     eight later turns, and of the tokens of all later turns together, up to a limit. A
//     user's weight is divided among his sessions. So one unit changes each table by 1 at
//     most, in sum and so also as a root of squares, which is why small traces can be
//     released.
//  4. Every cell, empty ones too, gets exact discrete Gaussian noise, by zero-concentrated
//     differential privacy: the ρ of all tables add up to the budget's.
//  5. The noisy tables are made to agree, and the noise that can be known as such is taken
//     off, without moving the mean lengths. Then they are tilted until drawings have the sums
//     of tokens that were measured. That is post-processing and costs nothing, and so is
//     everything below.
//  6. The errors that the noise leaves are predicted, and a model whose errors are too
//     large is refused: [*TooNoisy].
//  7. [Model.Generate] draws sessions: turns that extend a chat, branch off it or repeat
//     it, and starts; then it stretches time such that arrivals are as measured.
//
// The capture window, the limits of lengths, the block size, how many blocks a trunk may
// have and all edges of cells are public: declared by the operator, or fixed here.
//
// Lost: users, models and settings of requests; what sessions share beyond trunks; and
// what depends on more than two quantities at once. A session with more than 32 turns
// counts as one of 32.
//
// Rows come by integer arithmetic from the model and the seed, so that every machine draws
// the same. Only fitting uses floating point.
//
// # Files
//
//   - cells.go: the tables, the edges of their cells, and their shares of the budget
//   - collect.go: rows into sessions and units
//   - contribution.go: what a session adds to each table
//   - trunks.go: the prefixes that many units share, selected by noisy counts
//   - fit.go: options, the units of privacy, and all noise
//   - project.go: noise taken off a table: projection, tails, rows that stand out
//   - shape.go: noisy tables made to agree
//   - calibrate.go: tables tilted towards measured sums
//   - predict.go: predicted errors, and the refusal of traces that are too small
//   - model.go: the model, its statement and its privacy card
//   - modelfile.go: the model file (release/1)
//   - draw.go: random whole numbers: cells by weight, and by quota
//   - sessions.go: sessions drawn turn by turn
//   - times.go: when sessions start, and the stretching of time
//   - generate.go: a drawing, and its rows in order of arrival
//
// Exported names may change in any release.
package release
