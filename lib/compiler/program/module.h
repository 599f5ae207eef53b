// Compiled code of a program between the stages: target-neutral bitcode and what the runtime asks about it.
//
// Immutable once made, shared by reference; any thread.
// Serialised form (little-endian): magic, versions and target, then the fields, then a BLAKE3 hash of all
// that stands before it. A form that does not check out is invalid_binary.
#pragma once

#include <compiler/compiler.h>

namespace polder::compiler {

// What the later stages must know of the options that a translation unit was compiled with.
struct CodeOptions {
    bool is_optimized = true;
};

class CompiledModule final : public Module {
public:
    struct Parts {
        ModuleKind kind = ModuleKind::compiled_object;
        std::string bitcode;  // for spir64, built-ins unresolved
        // Of an executable that this process linked: its host form (targets/host/lower.h), a by-product of examining the
        // kernels. Not part of the serialised form.
        std::string host_bitcode;
        std::vector<KernelInfo> kernels;
        ProgramVariables variables;
        CodeOptions options;
        // For targets whose driver compiles the source itself; empty otherwise.
        driver::SourceProgram source;
    };
    explicit CompiledModule(Parts parts) : parts_(std::move(parts)) {}

    [[nodiscard]] ModuleKind kind() const override { return parts_.kind; }
    [[nodiscard]] std::span<const KernelInfo> kernels() const override { return parts_.kernels; }
    [[nodiscard]] const ProgramVariables& program_variables() const override { return parts_.variables; }
    [[nodiscard]] std::vector<std::byte> serialize() const override;

    [[nodiscard]] std::string_view bitcode() const { return parts_.bitcode; }
    [[nodiscard]] std::string_view host_bitcode() const { return parts_.host_bitcode; }
    [[nodiscard]] const CodeOptions& options() const { return parts_.options; }
    [[nodiscard]] const driver::SourceProgram& source() const { return parts_.source; }
    [[nodiscard]] const Parts& parts() const { return parts_; }

private:
    Parts parts_;
};

}  // namespace polder::compiler
