// The random number generator of a device: Philox 4x32-10, counter-based, so that the same seed gives the same numbers on every
// device. State: seed and the offset of the next unused counter. Lock mutex_ to use it.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

namespace torch_opencl {

class Generator final : public c10::GeneratorImpl {
public:
    explicit Generator(c10::DeviceIndex device);
    static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

    void set_current_seed(uint64_t seed) override;
    void set_offset(uint64_t offset) override { offset_ = offset; }
    uint64_t get_offset() const override { return offset_; }
    uint64_t current_seed() const override { return seed_; }
    uint64_t seed() override;
    void set_state(const c10::TensorImpl& state) override;
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

    // Reserves `counters` counters, and returns the first of them. The caller has locked mutex_.
    uint64_t take(uint64_t counters);

private:
    Generator* clone_impl() const override;
    uint64_t seed_;
    uint64_t offset_ = 0;
};

// Throws when there is no such device; -1 is the current one.
const at::Generator& default_generator(int device);

// Seed and first counter of `counters` numbers, of the given generator or the device's default one.
struct RandomPart {
    uint64_t seed;
    uint64_t offset;
};
RandomPart take_random(const std::optional<at::Generator>& generator, int device, uint64_t counters);

}  // namespace torch_opencl
