// For tests of CodeContest: made-up forms, and trials with made-up times.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <host/code_contest.h>
#include <map>
#include <optional>
#include <vector>

namespace polder::devices {

using First = CodeContest::First;
constexpr uint64_t ms = 1'000'000;
constexpr uint64_t us = 1'000;
constexpr uint64_t stack = 4096;

// Functions with other addresses, which are never called.
template <int number>
void function_of_form(const std::byte*, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {}

inline driver::HostCode code_of(WorkGroupFunction function) {
    return {.function = function, .stack_bytes = stack, .name = "kernel"};
}

class Forms final : public driver::OtherForms {
public:
    explicit Forms(std::vector<const driver::HostCode*> codes, uint64_t making_ns)
        : ns_to_make(making_ns), codes_(std::move(codes)) {}

    [[nodiscard]] size_t count() const override { return codes_.size(); }
    [[nodiscard]] const char* name(size_t) const override { return "a form"; }
    [[nodiscard]] uint64_t making_ns() const override { return ns_to_make; }
    void request(size_t form) noexcept override { ++requests[form]; }
    [[nodiscard]] std::optional<const driver::HostCode*> made(size_t form) const override {
        return is_ready ? std::optional{codes_[form]} : std::nullopt;
    }
    void measured(size_t form, float time, Verdict verdict) override {
        ++reports;
        times[form] = time;
        if (verdict == Verdict::faster)
            best = form;
        if (on_report)
            on_report();
    }

    const uint64_t ns_to_make;
    bool is_ready = true;
    std::map<size_t, int> requests;
    std::map<size_t, float> times;
    std::optional<size_t> best;  // count(): the planned code
    int reports = 0;
    std::function<void()> on_report;

private:
    std::vector<const driver::HostCode*> codes_;
};

class CodeContests : public testing::Test {
public:
    Forms& offer(std::vector<const driver::HostCode*> codes, uint64_t making_ns = 1 * ms) {
        auto forms = std::make_unique<Forms>(std::move(codes), making_ns);
        Forms& offered = *forms;
        contest.offer(std::move(forms));
        return offered;
    }

    // Works until the first form is measured.
    void begin() {
        contest.worked(20 * ms);
        contest.worked(1 * ms);
    }

    using Times = std::function<uint64_t(const driver::HostCode&)>;

    // Pairs of pieces until the trial ends, and then whole launches until it is confirmed. Returns how many pairs of pieces there were.
    int run_trial(const Times& ns) { return run_trial(ns, ns); }
    int run_trial(const Times& ns_of_piece, const Times& ns_of_launch) {
        return run(contest, ns_of_piece, ns_of_launch);
    }
    static int run(CodeContest& contest, const Times& ns_of_piece, const Times& ns_of_launch) {
        const CodeContest::Turn turn = contest.turn(contest.stack_bytes());
        EXPECT_NE(turn.rival, nullptr);
        const auto is_open = [&] { return contest.turn(contest.stack_bytes()).rival == turn.rival; };
        int pairs = 0;
        for (; turn.rival != nullptr && is_open() && !contest.wants_whole() && pairs < 1000; ++pairs)
            add_piece(contest, turn, ns_of_piece);
        for (int i = 0; turn.rival != nullptr && is_open() && i < 1000; ++i)
            add_launch(contest, turn, 64, ns_of_launch);
        EXPECT_FALSE(turn.rival != nullptr && is_open());
        return pairs;
    }
    static void add_piece(CodeContest& contest, const CodeContest::Turn& turn, const Times& ns) {
        const First first = contest.first();
        const bool is_code_first = first == First::current;
        const uint64_t before = ns(is_code_first ? *turn.code : *turn.rival);
        const uint64_t after = ns(is_code_first ? *turn.rival : *turn.code);
        contest.add(turn, first, is_code_first ? before : after, is_code_first ? after : before);
    }
    static void add_launch(CodeContest& contest, const CodeContest::Turn& turn, uint64_t groups, const Times& ns) {
        const driver::HostCode& code = contest.whole(turn, groups);
        contest.add_whole(turn, code, groups, ns(code));
    }

    const driver::HostCode& best() { return *contest.turn(contest.stack_bytes()).code; }

    const driver::HostCode planned = code_of(function_of_form<0>), other = code_of(function_of_form<1>),
                           third = code_of(function_of_form<2>);
    CodeContest contest{planned};
};

}  // namespace polder::devices
