// Compares the result of a function with its reference.
#pragma once

#include "buffer.h"
#include "functions.h"
#include "half.h"
#include "inputs.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace polder::math {

template <class T>
struct Outputs {
    Buffer<T> out, second;
    Buffer<int> out_n;
};

struct Verdict {
    double worst_ulp = 0;
    uint64_t failures = 0;
    std::string first_failures;  // a line each
};

// Units in the last place of T between `answer` (the computed value) and `exact`; infinite for a wrong class or a zero of the wrong sign.
template <class T>
[[nodiscard]] double ulp_error(T answer, Real exact);

template <class T>
[[nodiscard]] Verdict check(const Function& function, const Inputs<T>& inputs, const Outputs<T>& outputs);

extern template Verdict check(const Function&, const Inputs<Half>&, const Outputs<Half>&);
extern template Verdict check(const Function&, const Inputs<float>&, const Outputs<float>&);
extern template Verdict check(const Function&, const Inputs<double>&, const Outputs<double>&);

}  // namespace polder::math
