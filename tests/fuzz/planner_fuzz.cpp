// Planner, residency and transfers, driven by the fuzzer's input: see tests/unit/support/coherence_model.h.
#include "../unit/support/coherence_model.h"

#include <cstdint>

namespace {

// Every decision takes one or two bytes of the input; after its end, zeros.
class InputChoices final : public polder::test::Choices {
public:
    InputChoices(const uint8_t* data, size_t size) : data_(data), left_(size) {}
    uint64_t below(uint64_t limit) override {
        uint64_t number = next();
        if (limit > 256)
            number = number << 8 | next();
        return number % limit;
    }

private:
    uint8_t next() {
        if (left_ == 0)
            return 0;
        --left_;
        return *data_++;
    }
    const uint8_t* data_;
    size_t left_;
};

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    GTEST_FLAG_SET(break_on_failure, true);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    InputChoices choices{data, size};
    polder::test::CoherenceRun run{choices};
    run.run(static_cast<int>(std::min<size_t>(64, size / 8)));
    return 0;
}
