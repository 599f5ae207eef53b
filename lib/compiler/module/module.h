// CompiledModule: a program after compiling or linking, as target-neutral bitcode with the properties of its kernels.
//
// Immutable, shared by reference; any thread.
// Serialised format (little-endian): magic number, versions and target, the fields, then a BLAKE3 hash of all bytes
// before it. Bytes that do not have this format are invalid_binary.
#pragma once

#include <compiler/compiler.h>

namespace polder::compiler {

// The compile options of a translation unit that matter after it was compiled.
struct CodeOptions {
    bool is_optimized = true;
    bool flushes_subnormals = false;  // of all objects of an executable, or when it was linked
};

class CompiledModule final : public Module {
public:
    struct Parts {
        ModuleKind kind = ModuleKind::compiled_object;
        std::string bitcode;  // for spir64, built-ins unresolved
        // The host form (targets/host/lower.h) of an executable that this process linked; it was made to examine the kernels.
        // Not serialised.
        std::string host_bitcode;
        std::vector<KernelInfo> kernels;
        ProgramVariables variables;
        CodeOptions options;
        // For targets whose driver compiles the source itself; empty otherwise.
        driver::SourceProgram source;
        std::vector<KernelInfo> blocks;
    };
    explicit CompiledModule(Parts parts) : parts_(std::move(parts)) {}

    [[nodiscard]] ModuleKind kind() const override { return parts_.kind; }
    [[nodiscard]] std::span<const KernelInfo> kernels() const override { return parts_.kernels; }
    [[nodiscard]] const ProgramVariables& program_variables() const override { return parts_.variables; }
    [[nodiscard]] std::vector<std::byte> serialize() const override;
    [[nodiscard]] std::span<const KernelInfo> blocks() const override { return parts_.blocks; }

    [[nodiscard]] std::string_view bitcode() const { return parts_.bitcode; }
    [[nodiscard]] std::string_view host_bitcode() const { return parts_.host_bitcode; }
    [[nodiscard]] const CodeOptions& options() const { return parts_.options; }
    [[nodiscard]] const driver::SourceProgram& source() const { return parts_.source; }
    [[nodiscard]] const Parts& parts() const { return parts_; }

private:
    Parts parts_;
};

}  // namespace polder::compiler
