//go:build !linux

package trace

import (
	"errors"
	"os"
)

func openUnnamed(string, os.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*os.File, string) (string, error) { return "", errors.ErrUnsupported }
