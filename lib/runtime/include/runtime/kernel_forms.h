// KernelForms: other forms of one version of a kernel's code for the host (driver::OtherForms), made by the compiler on the threads of early code
// when the driver requests them. Decision 325.
//
// Belongs to a loaded kernel, and so to its DeviceCode. Any thread may call any function.
#pragma once

#include <runtime/device_code.h>

namespace polder::runtime {

class KernelForms final : public driver::OtherForms {
public:
    // Null when no other form is worth measuring, or the user wants none. `version` has been compiled, in `making_ns`.
    [[nodiscard]] static std::unique_ptr<KernelForms> of(DeviceCode& code, compiler::Executable& executable,
                                                         const compiler::KernelInfo& kernel,
                                                         const compiler::CodeVersion& version, uint64_t making_ns);

    [[nodiscard]] size_t count() const override { return forms_.size(); }
    [[nodiscard]] const char* name(size_t form) const override;
    [[nodiscard]] uint64_t making_ns() const override { return making_ns_; }
    void request(size_t form) noexcept override;
    [[nodiscard]] std::optional<const driver::HostCode*> made(size_t form) const override;
    void measured(size_t form, float time, Verdict verdict) override;

private:
    struct One {
        explicit One(compiler::Form of) : form(of) {}
        const compiler::Form form;
        const driver::HostCode* code = nullptr;  // valid once `is_made`
        std::atomic<bool> is_requested{false}, is_made{false};
    };

    KernelForms(DeviceCode& code, compiler::Executable& executable, const compiler::KernelInfo& kernel,
                compiler::CodeVersion version, const std::vector<compiler::Form>& forms, uint64_t making_ns);
    void make(One& one) const;
    [[nodiscard]] compiler::CodeVersion version_of(compiler::Form form) const;
    [[nodiscard]] bool is_surely_slow(const One& one) const;

    DeviceCode& code_;
    compiler::Executable& executable_;
    const compiler::KernelInfo& kernel_;
    const compiler::CodeVersion version_;
    const uint64_t making_ns_;
    std::vector<std::unique_ptr<One>> forms_;
    std::atomic<bool> two_vectors_are_slow_{false};
};

}  // namespace polder::runtime
