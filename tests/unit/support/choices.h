// Where the decisions of a random test come from: a generator with a seed, or a fuzzer's input.
// Values; one thread.
#pragma once

#include <cstdint>
#include <random>

namespace polder::test {

class Choices {
public:
    virtual ~Choices() = default;
    // At random below `limit`, which is not zero.
    virtual uint64_t below(uint64_t limit) = 0;
    bool one_in(uint64_t times) { return below(times) == 0; }
};

class RandomChoices final : public Choices {
public:
    explicit RandomChoices(uint64_t seed) : random_(seed) {}
    uint64_t below(uint64_t limit) override { return random_() % limit; }

private:
    std::mt19937_64 random_;
};

}  // namespace polder::test
