"""`python record.py gpt|mlp|inference FILE`: writes what CUDA calls one steady iteration of a program makes, for
`native/conformance/tests/blocking.rs`, which repeats them without PyTorch. Run as `blocking.py` is, on the null backend.

A library in front of ours writes down each call with its first eight words; calls that belong together (a product of
matrices with its descriptions) become one line, equal lines in a row one with a count.
"""

import ctypes
import importlib
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Where the recorded iteration stands: caches and allocators are warm.
WARM = 4

CALLS = """cudaGetDevice cudaGetLastError cudaStreamIsCapturing cudaFuncGetAttributes cudaPointerGetAttributes cudaMalloc
cudaHostAlloc cudaMemcpyAsync cudaMemsetAsync cudaStreamSynchronize cudaDeviceSynchronize cudaStreamWaitEvent
cudaEventCreateWithFlags cudaEventRecord cudaEventRecordWithFlags cudaEventQuery cudaEventSynchronize cudaLaunchKernel
__cudaLaunchKernel cublasSgemm_v2 cublasSgemmStridedBatched cublasLtMatmulDescSetAttribute cublasLtMatrixLayoutCreate
cublasLtMatmul""".split()

SOURCE = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef uint64_t word;
static FILE *out;
void record_to(const char *path) { out = path ? fopen(path, "w") : 0; }
static void note(const char *name, word a, word b, word c, word d, word e, word f, word g, word h) {
    if (!out) return;
    fprintf(out, "%s %lx %lx %lx %lx %lx %lx %lx %lx\\n", name, a, b, c, d, e, f, g, h);
    fflush(out);
}
"""
# More arguments than any of them has: what is too much is not looked at.
FORWARD = """word NAME(WORDS) {
    static word (*next)(TYPES);
    if (!next) next = dlsym(RTLD_NEXT, "NAME");
    note("NAME", a0, a1, a2, a3, a4, a5, a6, a7);
    return next(NAMES);
}
"""


def build(folder):
    """Compiles the library in front."""
    names = [f"a{number}" for number in range(18)]
    forward = FORWARD.replace("WORDS", ", ".join(f"word {name}" for name in names))
    forward = forward.replace("TYPES", ", ".join("word" for _ in names)).replace("NAMES", ", ".join(names))
    source, library = folder / "record.c", folder / "librecord.so"
    source.write_text(SOURCE + "".join(forward.replace("NAME", name) for name in CALLS))
    options = ["-O1", "-w", "-fno-builtin", "-shared", "-fPIC"]
    subprocess.run(["cc", *options, str(source), "-o", str(library), "-ldl"], check=True)
    return library


def run(name, library, calls):
    """The program, with the library in front: records the one iteration."""
    recorder = ctypes.CDLL(library)
    steps = importlib.import_module(name).program()
    for _ in range(WARM):
        next(steps)
    recorder.record_to(calls.encode())
    next(steps)
    recorder.record_to(None)


def lines(calls):
    """The calls as the test reads them."""
    layouts, attributes = [], 0
    for call in calls:
        name, *words = call.split()
        words = [int(word, 16) for word in words]
        match name:
            case "cudaMemcpyAsync":
                yield {1: "to {0}", 2: "from {0}", 3: "on {0}"}[words[3]].format(words[2])
            case "cudaMemsetAsync":
                yield f"fill {words[2]}"
            case "cudaMalloc" | "cudaHostAlloc":
                yield f"{name} {words[1]}"
            case "__cudaLaunchKernel" | "cudaLaunchKernel":
                yield "launch"
            case "cudaEventCreateWithFlags":
                # One is made where no passed one is left, as PyTorch does.
                pass
            case "cudaEventRecord" | "cudaEventRecordWithFlags":
                yield "record"
            case "cublasSgemm_v2":
                yield "product {} {} {} {} {}".format(*words[1:6])
            case "cublasLtMatmulDescSetAttribute":
                attributes += 1
            case "cublasLtMatrixLayoutCreate":
                layouts.append(words[2:4])
            case "cublasLtMatmul":
                (_, _), (inner, columns), (rows, _) = layouts
                # Four attributes: both operations, the epilogue and its bias.
                yield f"linear {rows} {columns} {inner}" if attributes == 4 else f"unknown linear of {attributes}"
                layouts, attributes = [], 0
            case _:
                yield name


def main(name, target):
    """Starts the program with the library in front, and writes its calls."""
    with tempfile.TemporaryDirectory() as folder:
        library, calls = build(Path(folder)), Path(folder) / "calls"
        environment = {**os.environ, "LD_PRELOAD": str(library)}
        subprocess.run([sys.executable, __file__, name, str(library), str(calls)], check=True, env=environment)
        groups = itertools.groupby(lines(calls.read_text().splitlines()))
        rows = [(line, len(list(group))) for line, group in groups]
    text = "".join(line + (f" x{count}" if count > 1 else "") + "\n" for line, count in rows)
    Path(target).write_text(f"# Made by bench/remoting/record.py {name}.\n{text}")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        run(*sys.argv[1:])
    else:
        main(*sys.argv[1:])
