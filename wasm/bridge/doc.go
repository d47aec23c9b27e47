// Package bridge is what the browser module does, without a browser: it takes
// bytes of timelines, keeps the one on screen and the base it is compared
// with, draws them, and answers the page's questions. Running a workload is
// package rerun's.
//
// Package main around it only exports it to JavaScript, so everything here is
// tested natively. Questions are lines of words parted by tabs; answers are
// JSON text, written by a small appender of our own, because encoding/json
// would be a fifth of the module. It opens no socket and no file, and it never
// waits: long work is done in slices that the worker asks for.
package bridge
