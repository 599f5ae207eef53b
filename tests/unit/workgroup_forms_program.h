// Random kernels for what the compiler knows of arrays, functions, pointers and places: functions that are not inlined with arrays, structures and
// pointers as parameters; places that are reflected or a row before; private arrays of which less and less is used; tables of bytes; structures
// under masks; branches that an argument chooses; numbers of a group that live across barriers, in loops; and for memory (workgroup_forms_memory.cpp): words
// whose parts are accessed, copies of bytes, checks at edges, members that change in turns, vectors of 8 and 16, numbers that live across barriers. And
// what single passes look for (workgroup_forms_shapes.cpp, workgroup_forms_passes.cpp, workgroup_forms_edges.cpp): stacks, windows, shuffles, rows that are
// written, divisions by what may be 1, blocks of a group, checks that all succeed, merges, narrow counters, fused products, limits that are chosen at edges,
// joined questions, volatile variables, rows that atomic operations change.
//
// There is no interpreter. The same text has a plain form (`plain_definitions`), without `restrict`, with private arrays in memory and with every
// function inlined, which runs one work-item after the other. Numbers are unsigned and places are bounded, so that nothing is undefined.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace polder::compiler::workgroup::test {

inline constexpr const char* plain_definitions =
    "#define RESTRICT\n#define ARRAY volatile\n#define FUNCTION(f) plain_##f\n";
inline constexpr const char* tested_definitions =
    "#define RESTRICT restrict\n#define ARRAY\n#define FUNCTION(f) called_##f\n";

// For all programs of a source: 64 numbers of each table are not the same function of their place.
[[nodiscard]] std::string forms_prelude();

// The words that each work-item has for itself, and what is on both sides of the place that `in` points to.
inline constexpr size_t own_words = 16;
inline constexpr size_t margin_words = 16384;

class FormsProgram {
public:
    explicit FormsProgram(uint32_t seed) : random_(seed) {}
    [[nodiscard]] std::string text(const std::string& name);

private:
    // What may be named where a statement stands.
    struct Scope {
        std::vector<std::string> numbers;  // uint, which may be assigned
        std::vector<std::string> shared;  // uint, mostly the same for all work-items
        std::vector<std::string> places;  // int, from -64 to 256
        bool has_memory = true;  // in, own, out and bytes
        bool meets_barriers = false;
        bool is_function = false;
        int depth = 0;
        int loops = 0;
    };

    uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
    template <class... Texts>
    std::string one_of(const Texts&... texts) {
        const std::vector<std::string> all{texts...};
        return all[pick(static_cast<uint32_t>(all.size()))];
    }
    const std::string& one_of(const std::vector<std::string>& all) {
        return all[pick(static_cast<uint32_t>(all.size()))];
    }
    std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }
    static std::string filled(std::string pattern, const std::vector<std::pair<std::string, std::string>>& values);

    std::string number(const Scope& scope, int depth);
    std::string shared_number(const Scope& scope);
    std::string below(const Scope& scope, uint32_t limit);
    std::string varying_condition(const Scope& scope);
    std::string shared_condition(const Scope& scope);
    std::string reflected(const Scope& scope, std::string& code);
    std::string row(const Scope& scope, std::string& code);
    std::string place(const Scope& scope, std::string& code);

    std::string block(const Scope& scope, uint32_t count);
    std::string statement(const Scope& scope);
    std::string read(const Scope& scope);
    std::string shrinking_array(const Scope& scope);
    std::string look_up(const Scope& scope);
    // `name.member` names a member of a structure that belongs to the work-item, behind the declaration, which opens a block.
    struct PlacedStructure {
        std::string type, name, declaration, place;
        uint32_t members = 0;  // of which all have names of one letter
        bool is_vector = false, is_mixed = false;
    };
    PlacedStructure placed_structure(const Scope& scope);
    std::string index_of_structure(const Scope& scope, uint32_t each);
    std::string structure(const Scope& scope);
    std::string own_word(const std::string& index);
    std::string own_words_again(const Scope& scope);
    std::string choose(const Scope& scope);
    std::string select_case(const Scope& scope);
    std::string loop(const Scope& scope);
    std::string group_number(const Scope& scope);
    std::string call(const Scope& scope);
    std::string memory_statement(const Scope& scope);
    std::string part_of(const Scope& scope, const std::string& array, uint32_t bytes);
    std::string change_of_parts(const Scope& scope, const std::string& array, uint32_t bytes);
    std::string array_of_parts(const Scope& scope, const std::string& array, uint32_t bytes);
    std::string words_and_parts(const Scope& scope);
    std::string copied_bytes(const Scope& scope);
    std::string checked_taps(const Scope& scope);
    std::string members_in_turns(const Scope& scope);
    std::string long_vector(const Scope& scope);
    std::string numbers_across_barriers(const Scope& scope);
    std::string shape_statement(const Scope& scope);
    std::string private_stack(const Scope& scope);
    std::string window_of_places(const Scope& scope);
    std::string shuffled_vector(const Scope& scope);
    std::string elements_of_vectors(const Scope& scope);
    std::string written_row(const Scope& scope);
    std::string divided_by_argument(const Scope& scope);
    std::string block_of_group(const Scope& scope);
    std::string pass_statement(const Scope& scope);
    std::string checked_sum(const Scope& scope);
    std::string merged_lists(const Scope& scope);
    std::string narrow_counters(const Scope& scope);
    std::string fused_sum(const Scope& scope);
    std::string edge_statement(const Scope& scope);
    std::string clipped_loop(const Scope& scope);
    std::string joined_question(const Scope& scope);
    std::string volatile_variable(const Scope& scope);
    std::string changed_local_row(const Scope& scope);
    std::string function();

    struct Function {
        std::string name;
        uint32_t kind;
    };

    std::mt19937 random_;
    uint32_t names_ = 0;
    std::string prefix_;
    std::vector<Function> functions_;
    bool has_alias_ = false;
    bool has_barriers_ = false;
    // The type of structures, if those of neighbouring work-items are neighbours. Else the words of each work-item are.
    std::optional<uint32_t> side_by_side_;
    // Where the words of a work-item are if structures are side by side: in rows, in structures of four, or in blocks of 64 words for 16 work-items.
    enum class OwnWords : uint8_t { rows, structures, blocks };
    OwnWords own_words_ = OwnWords::rows;
};

}  // namespace polder::compiler::workgroup::test
