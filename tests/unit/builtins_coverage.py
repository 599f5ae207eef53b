#!/usr/bin/env python3
"""Every built-in function that Clang declares for OpenCL C has a definition.

usage: builtins_coverage.py CLANG LLVM_NM OPENCL_C_H BITCODE...

The declarations are those of Clang's opencl-c.h, under every language version and with all optional
features; their mangled names are looked up in the bitcode (libclc's and ours), first as they are, then in
another address space, as the linking of the built-ins does. What Polder does not offer is listed below.
"""
import json
import re
import subprocess
import sys

# Parts of the language that are not offered, by function name or by a type in the signature.
NOT_OFFERED = [
    ("multi-sampled images", r"msaa"),
    ("writes to images that are read only, which Clang's header has by mistake",
     r"^intel_sub_group_block_write_ui\d* .*__read_only"),
    ("mipmapped images", r"^read_image\w+ .*(, float\d*){2}|^read_image\w+ .*float\d*, float|^write_image\w+ .*, int, |mip_levels"),
    ("vendor extensions", r"^(intel_(?!sub_group_)|amd_|arm_)|bfloat|^intel_sub_group_(avc|ime|ref|sic)_|^intel_sub_group_block_prefetch"
     r"|^intel_sub_group_block_\S+ .*__local"),
    ("atomic objects in private memory", r"^atomic_\w+ .*\(volatile atomic_"),
]
# Functions that the work-group pass and the front end put in place.
REPLACED = {
    "get_local_id", "get_group_id", "get_local_size", "get_enqueued_local_size", "get_num_groups",
    "get_global_offset", "get_global_size", "get_work_dim", "barrier", "printf",
}
VERSIONS = [("CL1.0", []), ("CL1.2", []), ("CL2.0", []), ("CL3.0", []),
            ("CL3.0", ["-__opencl_c_generic_address_space", "-__opencl_c_pipes", "-__opencl_c_device_enqueue"])]


def declarations(clang, header, version, disabled):
    command = [clang, "-target", "spir64-unknown-unknown", "-cl-std=" + version, "-cl-no-stdinc", "-include", header,
               "-x", "cl", "-fsyntax-only", "-Xclang", "-ast-dump=json", "/dev/null"]
    for extension in ["+all"] + disabled:
        command += ["-Xclang", "-cl-ext=" + extension]
    tree = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return {node["mangledName"]: (node["name"], node["type"]["qualType"].replace("__private ", ""))
            for node in tree["inner"] if node["kind"] == "FunctionDecl"}


def is_offered(name, signature):
    if name in REPLACED:
        return False
    return not any(re.search(pattern, name + " " + signature) for _, pattern in NOT_OFFERED)


def is_defined(mangled, defined):
    if mangled in defined:
        return True
    for space, others in (("U3AS4", ["U3AS1"]), ("U3AS1", ["U3AS4"]), ("U3AS3", ["U3AS4"]), ("U3AS2", ["U3AS1"])):
        if any(mangled.replace(space, other) in defined for other in others):
            return True
    # Two pointers of different spaces.
    generic = re.sub("U3AS[13]", "U3AS4", mangled)
    return generic in defined or re.sub("(PU3AS4VU7_Atomic)(.)PU3AS4", r"\1\2P", generic) in defined


def main():
    clang, nm, header, *bitcode = sys.argv[1:]
    defined = set()
    for path in bitcode:
        lines = subprocess.run([nm, "--defined-only", path], capture_output=True, check=True, text=True).stdout
        defined |= {line.split()[-1] for line in lines.splitlines()}
    wanted = {}
    for version, disabled in VERSIONS:
        wanted.update(declarations(clang, header, version, disabled))
    wanted = {mangled: what for mangled, what in wanted.items() if is_offered(*what)}
    missing = sorted((what, mangled) for mangled, what in wanted.items() if not is_defined(mangled, defined))
    for (name, signature), mangled in missing:
        print(f"missing: {name}  {signature}  {mangled}")
    print(f"{len(wanted)} built-in functions are offered, {len(missing)} of them lack a definition")
    # A header that declares nothing would hide everything.
    return 1 if missing or len(wanted) < 9000 else 0


sys.exit(main())
