// Statements of random kernels whose work-items read whole structures, walk along rows of their own or in steps of the launch's size, or know of
// their own place alone that it is aligned.
//
// Where lanes execute them, the lanes that are not active have neither a place that may be read nor one that is aligned.
#pragma once

#include "workgroup_memory_wraps.h"

namespace polder::compiler::workgroup::test {

class StructureMaker : public WrapMaker {
public:
    using WrapMaker::WrapMaker;

protected:
    MemoryStatement structured() {
        switch (pick(7)) {
        case 0: return read_aligned();
        case 4: return read_of_length();
        case 1: return write_aligned();
        case 2: return sum_row();
        case 3: return step_by_size();
        default: return read_structure();
        }
    }

private:
    // A row at a place that follows no step, as many elements as all work-items read, forwards or backwards.
    MemoryStatement sum_row() {
        constexpr NumberType types[] = {int_, uint_, long_, ulong_};
        constexpr int64_t width = 40, rows = 20;
        const NumberType type = types[pick(4)];
        const Number near = index(type);
        const Buffer from = buffer(), other = buffer();
        const int64_t first = pick(8), more = pick(9);
        const bool is_backwards = pick(3) == 0, is_asked = pick(2), has_other = pick(2);
        const Number asked = comparison(1);
        const std::string id = number(static_cast<int64_t>(names_++)), r = "r" + id, k = "k" + id, sum = "s" + id;
        const std::string t = type.name;
        const std::string rounds = "n + " + number(more);
        return on_each(
            "{ " + t + " " + r + " = " + near.text + " % " + number(rows) + "; long " + sum + " = 0; if (" + r +
                " >= 0" + (is_asked ? " && " + asked.text : "") + ") for (int " + k + " = 0; " + k + " < " + rounds +
                "; ++" + k + ") " + sum + " = (" + sum + " * 3 + (long)" + from.name + "[" + r + " * " + number(width) +
                " + " + (is_backwards ? number(first + 31) + " - " + k : number(first) + " + " + k) + "]" +
                (has_other ? " * (long)" + std::string(other.name) + "[" + k + "]" : "") + ") & 0xfffff; v2 = " + sum +
                " & 1023; }",
            [=](World& w, MemoryItem& m) {
                const int64_t value = near.value(w, m);
                const int64_t row = type.is_signed || type.bits < 64
                                        ? value % rows
                                        : static_cast<int64_t>(static_cast<uint64_t>(value) % rows);
                int64_t total = 0;
                if (row >= 0 && (!is_asked || asked.value(w, m) != 0))
                    for (int64_t round = 0; round < w.n + more; ++round)
                        total = (total * 3 + from.get(w, row * width + first + (is_backwards ? 31 - round : round)) *
                                                 (has_other ? other.get(w, round) : 1)) &
                                0xfffff;
                m.v[2] = total & 1023;
            });
    }

    // What all work-items read together, some of them more often than others. A number below zero is above each end.
    MemoryStatement step_by_size() {
        const bool is_unsigned = pick(2);
        const int64_t away = pick(30), end = 60 + pick(80);
        const Buffer from = buffer();
        const std::string id = number(static_cast<int64_t>(names_++)), i = "i" + id, sum = "s" + id;
        const std::string type = is_unsigned ? "uint " : "int ";
        return on_each("{ long " + sum + " = 0; for (" + type + i + " = get_global_id(0) " +
                           (is_unsigned ? "- " : "+ ") + number(away) + "; " + i + " < n * 40 + " + number(end) + "; " +
                           i + " += get_global_size(0)) " + sum + " = (" + sum + " * 3 + (long)" + from.name + "[" + i +
                           "]) & 0xfffff; v2 = " + sum + " & 1023; }",
                       [=](World& w, MemoryItem& m) {
                           int64_t total = 0;
                           const auto start = static_cast<int64_t>(m.global[0]) + (is_unsigned ? -away : away);
                           const auto size = static_cast<int64_t>(w.range.global[0]);
                           if (start >= 0)
                               for (int64_t place = start; place < int64_t{w.n} * 40 + end; place += size)
                                   total = (total * 3 + from.get(w, place)) & 0xfffff;
                           m.v[2] = total & 1023;
                       });
    }

    // Up to eight elements at a place that follows no step, member by member or as a vector, whose alignment is its size.
    MemoryStatement read_structure() {
        constexpr NumberType types[] = {int_, uint_, long_, ulong_};
        constexpr int64_t all_members[] = {2, 3, 4, 8};
        const NumberType type = types[pick(4)];
        const Number near = index(type), away = masked(whole(int_, 1), 7);
        const Buffer from = buffer();
        const int64_t members = all_members[pick(4)], structures = memory_elements / members;
        const bool is_vector = members != 3 && pick(2), is_asked = pick(2);
        const Number asked = comparison(1);
        const std::string id = number(static_cast<int64_t>(names_++)), i = "i" + id, x = "x" + id;
        const std::string vector = from.type + number(members);
        std::string text = "{ " + std::string(type.name) + " " + i + " = (" + type.name + ")(" + near.text + " ^ (" +
                           type.name + ")" + away.text + "); if (" + i + " >= 0 && " + i + " < " + number(structures) +
                           (is_asked ? " && " + asked.text : "") + ") { ";
        if (is_vector)
            text += vector + " " + x + " = ((global const " + vector + "*)" + from.name + ")[" + i + "]; ";
        for (int64_t m = 0; m < members && !is_vector; ++m)
            text += std::string(from.type) + " " + x + "s" + number(m) + " = " + from.name + "[" + i + " * " +
                    number(members) + " + " + number(m) + "]; ";
        text += "v2 = (";
        for (int64_t m = 0; m < members; ++m)
            text += std::string(m > 0 ? " ^ " : "") + "(long)" + x + (is_vector ? "." : "") + "s" + number(m) + " * " +
                    number(2 * m + 1);
        return on_each(text + ") & 1023; } }", [=](World& w, MemoryItem& m) {
            const int64_t place = type.wrap(near.value(w, m) ^ away.value(w, m));
            const bool is_inside = place >= 0 && place < structures;
            if (!is_inside || (is_asked && asked.value(w, m) == 0))
                return;
            int64_t sum = 0;
            for (int64_t member = 0; member < members; ++member)
                sum ^= from.get(w, place * members + member) * (2 * member + 1);
            m.v[2] = sum & 1023;
        });
    }

    // Some elements of the work-item's structure, which has `n` elements, perhaps fewer than are read. Long ones would end behind the buffer.
    MemoryStatement read_of_length() {
        const NumberType type = pick(2) ? uint_ : int_;
        const Buffer from = buffer();
        const int64_t members = 2 + pick(3), first = pick(6), rows = pick(3), before = pick(2);
        const bool is_asked = pick(2);
        const Number asked = comparison(1);
        const std::string i = "i" + number(static_cast<int64_t>(names_++)), t = type.name;
        std::string text = (is_asked ? "if (n < 7 && " + asked.text + ") { " : "if (n < 7) { ") + t + " " + i +
                           " = ((" + t + ")get_global_id(0) + " + number(1 - before) + ") * n + n * " + number(rows) +
                           " + " + number(first) + "; v2 = (";
        for (int64_t m = 0; m < members; ++m)
            text += std::string(m > 0 ? " ^ " : "") + "(long)" + from.name + "[" + i + " + " + number(m) + "] * " +
                    number(2 * m + 1);
        return on_each(text + ") & 1023; }", [=](World& w, MemoryItem& m) {
            if (w.n >= 7 || (is_asked && asked.value(w, m) == 0))
                return;
            const int64_t place = (static_cast<int64_t>(m.global[0]) + 1 - before + rows) * w.n + first;
            int64_t sum = 0;
            for (int64_t member = 0; member < members; ++member)
                sum ^= from.get(w, place + member) * (2 * member + 1);
            m.v[2] = sum & 1023;
        });
    }

    // One work-item of several reads a structure that is aligned to 64 bytes, and the places of all are a row.
    MemoryStatement read_aligned() {
        const Buffer from = buffer();
        const int64_t distance = 64 / from.bytes, first = pick(static_cast<uint32_t>(distance)), member = pick(4) / 3;
        const std::string x = "x" + number(static_cast<int64_t>(names_++));
        return on_each("{ typedef struct __attribute__((aligned(64))) { " + std::string(from.type) + " s0, s1; } " + x +
                           "; if ((get_global_id(0) & " + number(distance - 1) + ") == " + number(first) +
                           ") v2 = (long)((global const " + x + "*)(" + from.name + " + ((long)get_global_id(0) - " +
                           number(first) + ")))->s" + number(member) + " & 1023; }",
                       [=](World& w, MemoryItem& m) {
                           const auto id = static_cast<int64_t>(m.global[0]);
                           if ((id & (distance - 1)) == first)
                               m.v[2] = from.get(w, id - first + member) & 1023;
                       });
    }

    MemoryStatement write_aligned() {
        const Number e = whole(long_, 2);
        const int64_t away = away_;
        return on_each("{ typedef struct __attribute__((aligned(64))) { long x; } line; if (at >= " + number(away) +
                           " && (at - " + number(away) + ") % 8 == 0) ((global line*)(shifted + (at - " + number(away) +
                           ")))->x = " + e.text + "; }",
                       [e, away](World& w, MemoryItem& m) {
                           const auto at = static_cast<int64_t>(w.place(m));
                           if (at >= away && (at - away) % 8 == 0)
                               w.buffers.shifted[static_cast<size_t>(at - away)] = e.value(w, m);
                       });
    }
};

}  // namespace polder::compiler::workgroup::test
