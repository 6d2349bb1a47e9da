// Package jsonschema is a copy of github.com/santhosh-tekuri/jsonschema/v6 that costs
// nothing until it is used: see jsonschemagen, which makes it and says what is changed.
package jsonschema
