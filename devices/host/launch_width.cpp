#include <algorithm>
#include <bit>
#include <host/launch_width.h>

namespace polder::devices {
namespace {

// Half of the threads are enough when they are no slower; twice as many have to be worth it.
constexpr float faster_with_half = 1.0f, faster_with_twice = 0.9f;
// Fewer threads are not worth a trial.
constexpr uint32_t tried_from = 4;

}  // namespace

void LaunchWidth::forget(uint32_t size_class) {
    store(size_class_, size_class);
    store(limit_, 0);
    store(launches_, 0);
    store(interval_, first_interval);
    store(successes_, 0);
    usual_ns_.store(0, std::memory_order_relaxed);
}

LaunchWidth::Choice LaunchWidth::choose(uint32_t most, uint64_t group_count, float work_ns) {
    if (most < tried_from || work_ns > small_ns * static_cast<float>(most))
        return {.threads = most};
    const auto size_class = static_cast<uint32_t>(std::bit_width(group_count));
    if (size_class != load(size_class_))
        forget(size_class);
    const uint32_t limit = load(limit_);
    const uint32_t usual = limit == 0 ? most : std::min(most, limit);
    Choice choice{.threads = usual, .is_observed = true};
    const uint32_t launches = load(launches_) + 1;
    store(launches_, launches);
    if (launches % load(interval_) != 0 || usual_ns_.load(std::memory_order_relaxed) == 0)
        return choice;
    if (usual < most && next_is_twice_.load(std::memory_order_relaxed))
        return {.threads = std::min(most, 2 * usual), .trial = Choice::Trial::twice, .is_observed = true};
    if (usual >= tried_from)
        return {.threads = usual / 2, .trial = Choice::Trial::half, .is_observed = true};
    next_is_twice_.store(true, std::memory_order_relaxed);
    return choice;
}

void LaunchWidth::observe(const Choice& choice, float elapsed_ns) {
    const float usual_ns = usual_ns_.load(std::memory_order_relaxed);
    if (choice.trial == Choice::Trial::no) {
        // A launch during which the system ran something else counts as twice the average at most.
        const float counted = usual_ns == 0 ? elapsed_ns : std::min(elapsed_ns, 2 * usual_ns);
        usual_ns_.store(usual_ns == 0 ? counted : usual_ns + (counted - usual_ns) / 8, std::memory_order_relaxed);
        return;
    }
    const bool is_half = choice.trial == Choice::Trial::half;
    if (elapsed_ns > (is_half ? faster_with_half : faster_with_twice) * usual_ns) {
        store(successes_, 0);
        store(interval_, std::min(longest_interval, 2 * load(interval_)));
        next_is_twice_.store(is_half, std::memory_order_relaxed);
        return;
    }
    const uint32_t successes = load(successes_) + 1;
    if (successes < trials_to_change) {
        store(successes_, successes);
        return;
    }
    store(successes_, 0);
    store(interval_, first_interval);
    store(limit_, choice.threads);
    usual_ns_.store(elapsed_ns, std::memory_order_relaxed);
}

}  // namespace polder::devices
