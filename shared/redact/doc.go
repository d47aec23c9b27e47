// Package redact takes out of a timeline or a report what says whose it is:
// names of tensors, ops, models and files, paths, hosts, users, process
// numbers, stacks, command lines and the free text of logs. What stays is what
// memory is about: sizes, addresses, times, categories, devices, allocators
// with their settings, verdicts.
//
// It works by what may stay, not by what must go: a word survives when it is
// one of Tideline's own (words.txt, the words of its reports, formats and
// settings) or a number with its unit. Everything else becomes a pseudonym,
// the same for the same name throughout one Redactor: tensor-1, op-2, file-3,
// and scope-1/scope-2/op-4 for a name in scopes. A pseudonym cannot be turned
// back, but sizes and times can identify a model to those who know it.
package redact
