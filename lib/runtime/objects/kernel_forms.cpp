#include <base/options.h>
#include <runtime/early_code.h>
#include <runtime/kernel_forms.h>

namespace polder::runtime {
namespace {

// Where two vectors at once take this part of one vector's time, four take longer still.
constexpr float slow = 1.1f;

const char* name_of(compiler::Form form) {
    switch (form) {
    case compiler::Form::best: break;
    case compiler::Form::planned: return "the planned code";
    case compiler::Form::one_vector: return "one vector";
    case compiler::Form::two_vectors: return "two vectors at once";
    case compiler::Form::four_vectors: return "four vectors at once";
    case compiler::Form::without_lanes: return "code without lanes";
    case compiler::Form::with_lanes: return "code with lanes";
    }
    return "";
}

}  // namespace

std::unique_ptr<KernelForms> KernelForms::of(DeviceCode& code, compiler::Executable& executable,
                                             const compiler::KernelInfo& kernel, const compiler::CodeVersion& version,
                                             uint64_t making_ns) {
    if (!options::other_forms())
        return nullptr;
    const std::vector<compiler::Form> forms = executable.other_forms(kernel.name, version);
    if (forms.empty())
        return nullptr;
    // An earlier process has measured the forms, so their code is in the disk cache.
    const bool were_made = forms.front() == compiler::Form::planned;
    return std::unique_ptr<KernelForms>(
        new KernelForms(code, executable, kernel, version, forms, were_made ? 0 : making_ns));
}

KernelForms::KernelForms(DeviceCode& code, compiler::Executable& executable, const compiler::KernelInfo& kernel,
                         compiler::CodeVersion version, const std::vector<compiler::Form>& forms, uint64_t making_ns)
    : code_(code), executable_(executable), kernel_(kernel), version_(std::move(version)), making_ns_(making_ns) {
    for (const compiler::Form form : forms)
        forms_.push_back(std::make_unique<One>(form));
}

const char* KernelForms::name(size_t form) const { return name_of(forms_[form]->form); }

void KernelForms::request(size_t form) noexcept {
    One& one = *forms_[form];
    if (!is_surely_slow(one) && !one.is_requested.exchange(true))
        early_code::request_form(Ref<DeviceCode>::share(&code_), [this, &one] { make(one); });
}

bool KernelForms::is_surely_slow(const One& one) const {
    return one.form == compiler::Form::four_vectors && two_vectors_are_slow_.load(std::memory_order_relaxed);
}

void KernelForms::make(One& one) const {
    if (const Result<const driver::KernelCode*> made = executable_.code(kernel_.name, version_of(one.form)))
        one.code = std::get_if<driver::HostCode>(*made);
    one.is_made.store(true, std::memory_order_release);
}

std::optional<const driver::HostCode*> KernelForms::made(size_t form) const {
    const One& one = *forms_[form];
    if (is_surely_slow(one))
        return nullptr;
    return one.is_made.load(std::memory_order_acquire) ? std::optional{one.code} : std::nullopt;
}

compiler::CodeVersion KernelForms::version_of(compiler::Form form) const {
    compiler::CodeVersion version = version_;
    version.form = form;
    // Launches of either code are measured.
    if (form != compiler::Form::best)
        version.launches = compiler::Launches::any;
    return version;
}

// Writes a small file at once: a request behind a compilation would be dropped if the process ends.
void KernelForms::measured(size_t form, float time, Verdict verdict) {
    const compiler::Form measured = form == forms_.size() ? compiler::Form::best : forms_[form]->form;
    if (measured == compiler::Form::two_vectors)
        two_vectors_are_slow_.store(time > slow, std::memory_order_relaxed);
    try {
        if (verdict == Verdict::faster)
            executable_.prefer(kernel_.name, version_of(measured));
        else
            executable_.note_measured(kernel_.name, version_of(measured));
    } catch (const std::bad_alloc&) {  // a later process measures again
    }
}

}  // namespace polder::runtime
