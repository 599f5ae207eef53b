// Random structured kernels: a tree of statements over private variables v*, variables u* that are the same for all
// work-items, a private array and local memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace polder::compiler::workgroup::test {

inline constexpr size_t private_count = 5;
inline constexpr size_t uniform_count = 3;
inline constexpr size_t array_size = 4;

struct Expression {
    enum Kind {
        constant,
        private_variable,
        uniform_variable,
        argument,
        local_id,
        group_id,
        local_size,
        array,
        add,
        multiply,
        exclusive_or,
        less,
        both
    };
    Kind kind = constant;
    uint32_t value = 0;
    std::vector<Expression> operands;
};

struct Statement {
    enum Kind {
        assign,
        assign_uniform,
        assign_array,
        exchange,
        broadcast,
        sub_group,  // of the work-items that get there together
        choose,
        keep,         // a value that only the work-items which pass a test compute, before `body`, and use, after it
        keep_loaded,  // the same of a value that they load from local memory, where the first one put it
        loop,
        forever,
        leave,
        next,
        finish
    };
    Kind kind = assign;
    uint32_t target = 0;  // variable, or number of a loop or of a kept value
    std::vector<Expression> expressions;
    std::vector<Statement> body;
    std::vector<Statement> otherwise;
    uint32_t operation = 0;  // of a sub-group: a SubGroupFunction; of a kept value: the variable that gets it
};

enum class SubGroupFunction : uint32_t {
    sum,
    product,
    largest,
    exclusive_or,
    sum_so_far,
    sum_before,
    least_before,
    sum_of_four,
    largest_of_two,
    other_lane,
    shifted_lane,
    first_lane,
    ballot,
    lane,
    number,
    neighbour_in_memory,
    count
};

// Makes a program from a seed.
class Generator {
public:
    enum class SubGroups : uint8_t { none, used };
    enum class KeptValues : uint8_t { none, used };
    explicit Generator(uint32_t seed, SubGroups sub_groups = SubGroups::none, KeptValues kept_values = KeptValues::none)
        : random_(seed), sub_groups_(sub_groups), kept_values_(kept_values) {}

    std::vector<Statement> program() { return block(0, true, false); }

private:
    uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

    Expression uniform(int depth = 2) {
        switch (pick(depth > 0 ? 8 : 5)) {
        case 0: return {Expression::constant, pick(7), {}};
        case 1:
        case 2: return {Expression::uniform_variable, pick(uniform_count), {}};
        case 3: return {Expression::argument, 0, {}};
        case 4: return {pick(2) ? Expression::group_id : Expression::local_size, pick(3), {}};
        default: return {operation(), 0, {uniform(depth - 1), uniform(depth - 1)}};
        }
    }
    Expression varying(int depth = 3) {
        switch (pick(depth > 0 ? 9 : 6)) {
        case 0: return {Expression::constant, pick(100), {}};
        case 1:
        case 2: return {Expression::private_variable, pick(private_count), {}};
        case 3: return {Expression::local_id, pick(3), {}};
        case 4: return uniform(depth - 1);
        case 5: return {Expression::array, 0, {varying(0)}};
        default: return {operation(), 0, {varying(depth - 1), varying(depth - 1)}};
        }
    }
    Expression::Kind operation() {
        constexpr Expression::Kind all[] = {Expression::add, Expression::multiply, Expression::exclusive_or,
                                            Expression::less, Expression::both};
        return all[pick(5)];
    }
    // The same for all work-items, though only the last form of it shows that.
    Expression uniform_condition() {
        Expression condition{Expression::less, 0, {uniform(1), {Expression::constant, pick(5), {}}}};
        if (pick(3))
            return condition;
        Expression always{
            Expression::less, 0, {{Expression::local_id, pick(3), {}}, {Expression::constant, 100000, {}}}};
        return {Expression::both, 0, {condition, always}};
    }
    Expression varying_condition() {
        return {
            Expression::less,
            0,
            {{Expression::both, 0, {varying(1), {Expression::constant, 7, {}}}}, {Expression::constant, pick(8), {}}}};
    }

    std::vector<Statement> block(int depth, bool is_uniform, bool in_loop) {
        std::vector<Statement> result;
        const uint32_t count = 1 + pick(depth == 0 ? 7 : 4);
        for (uint32_t i = 0; i < count; ++i)
            result.push_back(statement(depth, is_uniform, in_loop));
        return result;
    }

    Statement statement(int depth, bool is_uniform, bool in_loop) {
        if (sub_groups_ == SubGroups::used && pick(4) == 0)
            return {Statement::sub_group,
                    pick(private_count),
                    {varying(), pick(2) ? varying(1) : uniform(1)},
                    {},
                    {},
                    pick(static_cast<uint32_t>(SubGroupFunction::count))};
        if (kept_values_ == KeptValues::used && depth < 3 && pick(4) == 0)
            return keep(depth, is_uniform, in_loop);
        const uint32_t choice = pick(depth < 4 ? 20 : 9);
        if (choice < 4)
            return {Statement::assign, pick(private_count), {varying()}, {}, {}};
        if (choice < 5)
            return {Statement::assign_array, 0, {varying(1), varying()}, {}, {}};
        if (choice < 9) {
            if (!is_uniform)
                return {Statement::assign, pick(private_count), {varying()}, {}, {}};
            if (choice < 6)
                return {Statement::assign_uniform, pick(uniform_count), {uniform()}, {}, {}};
            if (choice < 8)
                return {Statement::exchange, pick(private_count), {varying(), uniform(1)}, {}, {}};
            return {Statement::broadcast, pick(uniform_count), {varying()}, {}, {}};
        }
        if (choice < 14) {
            const bool stays = is_uniform && pick(3) != 0;
            Statement result{Statement::choose, 0, {stays ? uniform_condition() : varying_condition()}, {}, {}};
            result.body = block(depth + 1, stays, in_loop && (stays || !is_uniform));
            if (pick(2))
                result.otherwise = block(depth + 1, stays, in_loop && (stays || !is_uniform));
            return result;
        }
        if (choice < 17)
            return loop(depth, is_uniform);
        if (choice < 19 && in_loop) {
            Statement result{Statement::choose, 0, {is_uniform ? uniform_condition() : varying_condition()}, {}, {}};
            result.body.push_back({pick(2) ? Statement::leave : Statement::next, 0, {}, {}, {}});
            return result;
        }
        // A return, sometimes of all.
        Statement result{
            Statement::choose, 0, {pick(2) && is_uniform ? uniform_condition() : varying_condition()}, {}, {}};
        result.body.push_back({Statement::finish, pick(1000), {varying(1)}, {}, {}});
        return result;
    }

    Statement loop(int depth, bool is_uniform) {
        const bool stays = is_uniform && pick(4) != 0;
        Statement result{
            pick(4) ? Statement::loop : Statement::forever, ++loops_, {stays ? uniform(1) : varying(1)}, {}, {}};
        result.body = block(depth + 1, stays, true);
        return result;
    }

    Statement keep(int depth, bool is_uniform, bool in_loop) {
        // Of ids and constants alone, so that it is true for the same work-items before and after the body.
        Expression some{
            Expression::less,
            0,
            {{Expression::exclusive_or, 0, {{Expression::local_id, pick(3), {}}, {Expression::constant, pick(20), {}}}},
             {Expression::constant, 1U << pick(3), {}}}};
        const auto kind = is_uniform && pick(2) ? Statement::keep_loaded : Statement::keep;
        Statement result{kind, kept_++, {some, pick(4) ? uniform() : varying()}, {}, {}, pick(private_count)};
        result.body = block(depth + 1, is_uniform, in_loop);
        return result;
    }

    std::mt19937 random_;
    const SubGroups sub_groups_;
    const KeptValues kept_values_;
    uint32_t kept_ = 0;
    uint32_t loops_ = 0;
};

} // namespace polder::compiler::workgroup::test
