// Package reader is the core of the browser's third module, which turns
// whatever people hold (logs, snapshots, profiles, traces) into a timeline for
// the viewer and says what it means.
//
// It runs in a worker of its own, started with the first foreign file, so that
// neither its size nor its work is in the way of a picture. Bytes come in as
// the file is read and go out as blocks of a .tideline, so that no file is held
// whole. What is read and how is package ingest's; nothing here knows a format.
package reader
