#include "generator.h"

#include "stream.h"

#include <ATen/Functions.h>
#include <ATen/Utils.h>
#include <cstring>
#include <memory>

namespace torch_opencl {
namespace {

struct State {
    uint64_t seed;
    uint64_t offset;
};

}  // namespace

Generator::Generator(c10::DeviceIndex device)
    : c10::GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, device),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      seed_(c10::default_rng_seed_val) {}

void Generator::set_current_seed(uint64_t seed) {
    seed_ = seed;
    offset_ = 0;
}

uint64_t Generator::seed() {
    set_current_seed(c10::detail::getNonDeterministicRandom(false));
    return seed_;
}

void Generator::set_state(const c10::TensorImpl& state) {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == sizeof(State), "opencl: the state of a generator has ", sizeof(State), " bytes, not ",
                state.numel());
    State values;
    std::memcpy(&values, state.data(), sizeof(values));
    seed_ = values.seed;
    offset_ = values.offset;
}

c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
    at::Tensor state = at::empty({sizeof(State)}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    const State values{seed_, offset_};
    std::memcpy(state.mutable_data_ptr(), &values, sizeof(values));
    return state.getIntrusivePtr();
}

Generator* Generator::clone_impl() const {
    auto* const copy = new Generator(device().index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
}

uint64_t Generator::take(uint64_t counters) {
    const uint64_t first = offset_;
    offset_ += counters;
    return first;
}

const at::Generator& default_generator(int device) {
    static auto* const all = [] {
        auto* const made = new std::vector<at::Generator>;
        for (size_t i = 0; i < Platform::get().devices().size(); ++i)
            made->push_back(at::make_generator<Generator>(static_cast<c10::DeviceIndex>(i)));
        return made;
    }();
    const int index = device < 0 ? current_device() : device;
    static_cast<void>(Platform::get().device(index));
    return (*all)[static_cast<size_t>(index)];
}

RandomPart take_random(const std::optional<at::Generator>& generator, int device, uint64_t counters) {
    auto* const used = at::get_generator_or_default<Generator>(generator, default_generator(device));
    const std::lock_guard lock(used->mutex_);
    return {used->current_seed(), used->take(counters)};
}

}  // namespace torch_opencl
