// lapax in a Go program that runs XLA through a PJRT plugin, as gopjrt does:
//
//	export CGO_CFLAGS=$(python -m lapax paths --cflags) CGO_LDFLAGS=$(python -m lapax paths --libs)
//	go build -o host . && ./host plugin.so
//
// A program needs Register alone, after it has loaded the plugin and before it compiles. main stands for the
// rest of it.
package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include "lapax.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// Register lets the plugin that was loaded from this path call lapax's targets.
func Register(plugin string) error {
	path := C.CString(plugin)
	defer C.free(unsafe.Pointer(path))
	refusal := C.lapax_register_plugin(path, nil, nil, nil)
	if refusal == nil {
		return nil
	}
	defer C.lapax_free(refusal)
	return errors.New(C.GoString(refusal))
}

// load is what gopjrt's GetPlugin does with a path.
func load(plugin string) error {
	path := C.CString(plugin)
	defer C.free(unsafe.Pointer(path))
	if C.dlopen(path, C.RTLD_NOW) == nil {
		return errors.New(C.GoString(C.dlerror()))
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: host plugin.so")
		os.Exit(2)
	}
	for _, step := range []func(string) error{load, Register} {
		if err := step(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Printf("lapax %s: %d targets\n", C.GoString(C.lapax_version()), C.lapax_target_count())
}
