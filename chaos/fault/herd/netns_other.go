//go:build !linux

package herd

import (
	"context"
	"errors"
)

// namespaces are Linux's.
type namespaces struct{ loopback }

func newNamespaces(Spec) network { return namespaces{} }

func (namespaces) open(context.Context) error {
	return errors.New("network namespaces are a thing of Linux: run without them here")
}
