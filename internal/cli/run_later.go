package cli

import "context"

func runStart(context.Context, *runOptions) error { return notInBuild("", "x") }

func runLater(context.Context, *runOptions, plan) error { return notInBuild("", "x") }
