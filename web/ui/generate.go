package ui

//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1100 generate -path .
