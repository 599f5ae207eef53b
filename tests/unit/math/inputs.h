// Arguments that the math functions are tested with: special values in all combinations, random bit patterns,
// and values where a function is interesting or hard. The same for every run.
#pragma once

#include "buffer.h"
#include "functions.h"

#include <vector>

namespace polder::math {

template <class T>
struct Inputs {
    Buffer<T> a, b, c;
    Buffer<int> n;
};

template <class T>
[[nodiscard]] Inputs<T> make_inputs(Domain domain, size_t random_count);

extern template Inputs<float> make_inputs(Domain, size_t);
extern template Inputs<double> make_inputs(Domain, size_t);

} // namespace polder::math
