// Package draw turns a timeline into pictures: lanes drawn into an RGBA image
// by a small rasteriser of its own.
//
// The same code paints the page's canvas in the browser's worker and the PNGs
// of reports and tests, so screen, report and test image are one. It draws no
// text: axes, labels and hover are the page's, made from Ticks and Hit. It
// keeps no timeline: everything comes from package store at the resolution of
// the picture, so a frame costs what its pixels cost.
package draw
