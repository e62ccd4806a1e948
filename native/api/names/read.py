"""Reads from wheels which functions of CUDA's libraries the frameworks reach for, and writes one list a package.

    python3 native/api/names/read.py [package ...]

A function counts as imported when a shared object of the package names it as an undefined symbol, looks it up by name
(`dlsym` or `ctypes`), or calls a stub of its own that looks it up at its first use. Of such stubs XLA links one for
each symbol that a library has, private ones too; only those that some code refers to are listed.
"""

import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from bisect import bisect_right
from pathlib import Path

# Package and version, the CUDA release of its unversioned names, and the wheels that make it up.
PACKAGES = [
    *(("torch", version, 13, ["torch"]) for version in ("2.11.0", "2.12.1", "2.13.0", "2.14.1")),
    *(
        (f"jax-cuda{cuda}", version, cuda, [f"jax-cuda{cuda}-pjrt", f"jax-cuda{cuda}-plugin"])
        for cuda in (12, 13)
        for version in ("0.11.2", "0.12.0.1")
    ),
    ("tensorflow", "2.21.0", 12, ["tensorflow"]),
    ("onnxruntime-gpu", "1.31.1", 13, ["onnxruntime-gpu"]),
    ("bitsandbytes", "0.50.2", 13, ["bitsandbytes"]),
    ("vllm", "0.33.0", 13, ["vllm"]),
    ("cupy-cuda12x", "12.3.0", 12, ["cupy-cuda12x"]),
    ("cupy-cuda12x", "14.2.0", 12, ["cupy-cuda12x"]),
    ("cupy-cuda13x", "14.2.0", 13, ["cupy-cuda13x"]),
]
PYTHON = "3.12"
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (35, 34, 31, 28, 27, 24)] + ["manylinux2014_x86_64"]

# Prefix of a library's functions, and its SONAME beside CUDA 12 and 13; the first prefix that fits counts.
LIBRARIES = {
    "cublasLt": ("libcublasLt.so.12", "libcublasLt.so.13"),
    "cublas": ("libcublas.so.12", "libcublas.so.13"),
    "cufft": ("libcufft.so.11", "libcufft.so.12"),
    "curand": ("libcurand.so.10", "libcurand.so.10"),
    "cusolver": ("libcusolver.so.11", "libcusolver.so.12"),
    "cusparseLt": ("libcusparseLt.so.0", "libcusparseLt.so.0"),
    "cusparse": ("libcusparse.so.12", "libcusparse.so.12"),
    "cudnn": ("libcudnn.so.9", "libcudnn.so.9"),
    "nccl": ("libnccl.so.2", "libnccl.so.2"),
    "cupti": ("libcupti.so.12", "libcupti.so.13"),
    "nvshmem": ("libnvshmem_host.so.3", "libnvshmem_host.so.3"),
    "cuFile": ("libcufile.so.0", "libcufile.so.0"),
}
PREFIXES = "|".join(LIBRARIES)
NAME = re.compile(rf"(?:nvshmem[a-z]*_|(?:{PREFIXES})[A-Z])\w+")
# Words that look like functions and are none: types, helpers in messages, and stubs whose distance stands in some code
# by chance.
NO_FUNCTION = re.compile(
    r"\w+(?:_t|Enum)|ncclUniqueId|cublas(?:Lt|OpFromChar|LtMatmulScaleMode|LtMatMulInt8SetupAlgo)"
    r"|cublasUint8gemmBias|cusolverSpDgluSolve|nvshmemx_put128_signal_nbi_on_stream"
)
# Names that stand alone in a shared object, and in quotes in Python. NVSHMEM's are those of device functions.
LONE = re.compile(rf"\0((?:{PREFIXES})[A-Z]\w+)(?=\0)".encode())
QUOTED = re.compile(rf"[\"']((?:{PREFIXES})[A-Z]\w+)[\"']".encode())
# A stub: compare the table's entry with null, jump there or push its index. What refers to one: call, jmp, lea.
STUB_BYTES = 32
STUB = re.compile(rb"\x48\x83\x3d....\x00(?:\x74.|\x0f\x84....)\xff\x25", re.DOTALL)
REFERENCES = [
    re.compile(rb"(?=[\xe8\xe9](....))", re.DOTALL),
    re.compile(rb"(?=[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](....))", re.DOTALL),
]


class Elf:
    """What a 64-bit little-endian shared object says of its symbols."""

    def __init__(self, data):
        self.data = data
        offset, size, count, names = struct.unpack_from("<Q10xHHH", data, 40)
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * at) for at in range(count)]
        start = sections[names][4]
        self.sections = sections
        self.by_name = {self.text(start + section[0]): section for section in sections}

    def text(self, at):
        return self.data[at : self.data.index(b"\0", at)].decode()

    def symbols(self, table):
        """Name, type, section, address and place in the table of each symbol."""
        section = self.by_name.get(table)
        if section is None:
            return
        strings = self.sections[section[6]][4]
        for place, at in enumerate(range(section[4], section[4] + section[5], 24)):
            name, info, _, index, address = struct.unpack_from("<IBBHQ", self.data, at)
            yield self.text(strings + name), info & 15, index, address, place

    def versions(self):
        """The library of each version that symbols ask for, by the version's number."""
        section = self.by_name.get(".gnu.version_r")
        found = {}
        if section is None:
            return found
        strings, at = self.sections[section[6]][4], section[4]
        while True:
            _, count, file, first, following = struct.unpack_from("<HHIII", self.data, at)
            entry = at + first
            for _ in range(count):
                _, _, number, name, further = struct.unpack_from("<IHHII", self.data, entry)
                found[number] = (self.text(strings + file), self.text(strings + name))
                entry += further
            if following == 0:
                return found
            at += following

    def undefined(self):
        """Undefined names with the library and version that they ask for, if any."""
        versions, numbers = self.versions(), self.by_name.get(".gnu.version")
        for name, _, index, _, place in self.symbols(".dynsym"):
            if index == 0 and name:
                number = struct.unpack_from("<H", self.data, numbers[4] + 2 * place)[0] if numbers else 0
                yield name, versions.get(number & 0x7FFF)

    def stubs_in_use(self):
        """The names of stubs to which code or data refers."""
        stubs = {}
        for name, kind, index, address, _ in self.symbols(".symtab"):
            if kind == 2 and 0 < index < len(self.sections) and family(name):
                section = self.sections[index]
                if STUB.match(self.data, section[4] + address - section[3]):
                    stubs[address] = name
        places = sorted(stubs)
        used = set()
        if not places:
            return used
        low, high = places[0], places[-1]
        for section in self.sections:
            # Executable ones.
            if section[1] == 1 and section[2] & 4:
                code = memoryview(self.data)[section[4] : section[4] + section[5]]
                for pattern in REFERENCES:
                    for match in pattern.finditer(code):
                        target = section[3] + match.end(1) + int.from_bytes(match[1], "little", signed=True)
                        if low <= target <= high and target in stubs:
                            # Part of an instruction of a stub may look like a call.
                            before = bisect_right(places, section[3] + match.start())
                            if before == 0 or section[3] + match.start() - places[before - 1] >= STUB_BYTES:
                                used.add(stubs[target])
            # Relocations of pointers: R_X86_64_RELATIVE.
            if section[1] == 4:
                for at in range(section[4], section[4] + section[5], 24):
                    _, info, addend = struct.unpack_from("<QQq", self.data, at)
                    if info & 0xFFFFFFFF == 8 and low <= addend <= high and addend in stubs:
                        used.add(stubs[addend])
        return used


def family(name):
    """The prefix of the library to which a function belongs; none for what is no function of these libraries."""
    is_function = NAME.fullmatch(name) and not NO_FUNCTION.fullmatch(name)
    return next(prefix for prefix in LIBRARIES if name.startswith(prefix)) if is_function else None


def imports(data):
    """Each function that a file of a wheel imports, with the library and version that it asks for, if any."""
    if not data.startswith(b"\x7fELF"):
        # Python programs that load a library themselves.
        names = QUOTED.findall(data) if b"ctypes" in data else []
        return [(name.decode(), None) for name in names if family(name.decode())]
    elf = Elf(data)
    undefined = list(elf.undefined())
    found = [(name, asked) for name, asked in undefined if family(name)]
    stubs = elf.stubs_in_use()
    found += [(name, None) for name in stubs]
    if not stubs and any(name in ("dlsym", "dlvsym") for name, _ in undefined):
        section = elf.by_name.get(".rodata", [0] * 10)
        lone = LONE.findall(data, max(section[4] - 1, 0), section[4] + section[5] + 1)
        found += [(name.decode(), None) for name in lone if family(name.decode())]
    return found


def read(cuda, wheels):
    """The lines of a package's list."""
    lines = set()
    for wheel in wheels:
        with tempfile.TemporaryDirectory() as folder:
            platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            subprocess.run([*command, "--python-version", PYTHON, *platforms, "--dest", folder, wheel], check=True)
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as archive:
                for entry in archive.namelist():
                    if entry.endswith(".py") or ".so" in Path(entry).suffixes:
                        for name, asked in imports(archive.read(entry)):
                            sonames = LIBRARIES[family(name)]
                            soname, node = asked or (sonames[cuda - 12], None)
                            version = "" if node is None else "@" if node == soname else f"@{node}"
                            # Beside CUDA 11 there is no library of ours.
                            if soname in sonames:
                                lines.add(f"{soname} {name}{version}")
    return sorted(lines)


def main(wanted):
    """Writes the lists of the packages that are named, else of all."""
    folder = Path(__file__).parent / "libraries"
    for package, version, cuda, wheels in PACKAGES:
        if wanted and package not in wanted:
            continue
        lines = read(cuda, [f"{wheel}=={version}" for wheel in wheels])
        head = f"# What {package} {version} imports, read by ../read.py. After @: the version, none for the library's name."
        (folder / f"{package}-{version}.txt").write_text("\n".join([head, *lines, ""]))
        print(f"{package} {version}: {len(lines)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
