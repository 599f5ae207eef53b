#include "other_forms.h"

namespace polder::compiler {
namespace {

// Compiling more vectors of long code takes long.
constexpr uint64_t bytes_of_two_vectors = uint64_t{96} << 10, bytes_of_four_vectors = uint64_t{48} << 10;
// Lanes are not compiled where they are estimated to take many times as long.
constexpr double estimate_error = 4;
// Code without lanes is the likely one where lanes are estimated to take more than this part of its time. It is also made sooner than more vectors.
constexpr double little_gain = 0.2;

}  // namespace

unsigned vectors_of(Form form) {
    switch (form) {
    case Form::one_vector: return 1;
    case Form::two_vectors: return 2;
    case Form::four_vectors: return 4;
    default: return 0;
    }
}

std::vector<Form> other_forms(const workgroup::LaneReport& lanes, uint64_t object_bytes, bool has_same_results) {
    std::vector<Form> forms;
    if (lanes.loops == 0) {
        const bool may_err = lanes.keeps_vectors || (lanes.estimate > 0 && lanes.estimate < estimate_error);
        if (has_same_results && may_err)
            forms.push_back(Form::with_lanes);
        return forms;
    }
    const bool may_gain_little = has_same_results && lanes.estimate > little_gain;
    if (may_gain_little)
        forms.push_back(Form::without_lanes);
    const auto add_vectors = [&](Form form, uint64_t bytes_max) {
        if (vectors_of(form) != lanes.vectors && (vectors_of(form) < lanes.vectors || object_bytes <= bytes_max))
            forms.push_back(form);
    };
    add_vectors(Form::two_vectors, bytes_of_two_vectors);
    add_vectors(Form::four_vectors, bytes_of_four_vectors);
    add_vectors(Form::one_vector, bytes_of_two_vectors);
    if (has_same_results && lanes.keeps_vectors)
        forms.push_back(Form::with_lanes);
    if (has_same_results && !may_gain_little)
        forms.push_back(Form::without_lanes);
    return forms;
}

}  // namespace polder::compiler
