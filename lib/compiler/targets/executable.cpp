// compiler::Executable::open: chooses the code generator of a target's format.
#include "nvptx/executable.h"

#include "files/paths.h"
#include "frontend/clang/clang_definitions.h"
#include "frontend/clang/parsed_arguments.h"
#include "host/executable.h"
#include "machine/machine_pool.h"
#include "module/module.h"
#include "program/recent_builds.h"
#include "source/executable.h"

#include <compiler/compiler.h>

namespace polder::compiler {

Result<std::shared_ptr<Executable>> Executable::open(std::shared_ptr<const Module> module, const Target& target) {
    return open_zeroed(std::move(module), target, {});
}

namespace {

// Programs that are built again share their code.
std::shared_ptr<Executable> open_for_host(std::shared_ptr<const Module> module, const Target& target) {
    const uint64_t local_memory = target.code.local_memory_bytes;
    if (auto recent = RecentBuilds::get().code(*module, local_memory))
        return recent;
    const Module& program = *module;
    auto made = make_host_executable(std::move(module), target, {});
    RecentBuilds::get().keep_code(program, local_memory, made);
    return made;
}

}  // namespace

Result<std::shared_ptr<Executable>> open_zeroed(std::shared_ptr<const Module> module, const Target& target,
                                                const ZeroedMemory& zeroed) {
    if (module == nullptr || module->kind() != ModuleKind::executable)
        return fail(Status::invalid_program_executable, "not an executable program");
    const bool has_bitcode = !static_cast<const CompiledModule&>(*module).bitcode().empty();
    if (!has_bitcode && target.code.format != driver::CodeFormat::opencl_c)
        return fail(Status::invalid_binary, "error: the program is machine code of another device");
    switch (target.code.format) {
    case driver::CodeFormat::host_function:
        return zeroed == ZeroedMemory{} ? open_for_host(std::move(module), target)
                                        : make_host_executable(std::move(module), target, zeroed);
    case driver::CodeFormat::ptx: return make_nvptx_executable(std::move(module), target, zeroed);
    case driver::CodeFormat::opencl_c:
        if (zeroed != ZeroedMemory{})
            break;
        return make_source_executable(std::move(module), target);
    default: break;
    }
    return fail(Status::compiler_not_available, "error: no code can be generated in the format of this device");
}

Installation installation() { return {paths().builtins, paths().problem}; }

// LLVM contexts live only as long as a compilation. Besides target machines and parsed options only the mapped libraries of built-ins stay, which are small.
void unload() {
    MachinePool::get().clear();
    ParsedArguments::get().clear();
    ClangDefinitions::get().clear();
    RecentBuilds::get().clear();
}

}  // namespace polder::compiler
