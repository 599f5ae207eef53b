// The page: apps/memory_viewer/viewer.html with the trace's columns in it, in base64. About 12 characters an event.
#include "exports.h"
#include "viewer.inc"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace polder::tool {
namespace {

using trace::TimedEvent;
using trace::TraceFile;

void write_base64(const std::byte* data, size_t size, std::ostream& out) {
    constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((size + 2) / 3 * 4);
    for (size_t at = 0; at < size; at += 3) {
        uint32_t group = 0;
        for (size_t i = 0; i < 3; ++i)
            group = group << 8 | (at + i < size ? static_cast<uint32_t>(data[at + i]) : 0);
        for (size_t i = 0; i < 4; ++i)
            text += at + i <= size ? letters[(group >> (18 - 6 * i)) & 63] : '=';
    }
    out << text;
}

// A column of numbers, seven bits a byte, the low ones first; all bytes of a number but the last have the bit 128.
class Column {
public:
    void add(uint64_t value) {
        for (; value >= 128; value >>= 7)
            bytes_.push_back(static_cast<std::byte>(value | 128));
        bytes_.push_back(static_cast<std::byte>(value));
    }
    // Of either sign: 0, -1, 1, -2, ...
    void add_signed(int64_t value) {
        add(value < 0 ? ~static_cast<uint64_t>(value) * 2 + 1 : static_cast<uint64_t>(value) * 2);
    }
    void write(const char* name, std::ostream& out) const {
        out << name << ":\"";
        write_base64(bytes_.data(), bytes_.size(), out);
        out << "\",\n";
    }

private:
    std::vector<std::byte> bytes_;
};

// JavaScript's numbers are doubles. Larger numbers are written as this one, so that twice the difference of two numbers is exact.
constexpr uint64_t number_max = uint64_t{1} << 51;
constexpr size_t field_count = 4;
using FieldValues = std::array<int64_t, field_count>;

FieldValues fields_of(const trace::Event& event) {
    const auto number = [](uint64_t value) { return static_cast<int64_t>(std::min(value, number_max)); };
    return {number(event.storage), number(event.address), number(event.size), number(event.extra)};
}

// There are few different combinations of kind, spaces, flags and queue. An event refers to its combination, the shape, by a number. Its other
// fields are written as differences to the last event of the same shape, which are small.
void write_events(const TraceFile& trace, std::ostream& out) {
    using Shape = std::array<uint32_t, 5>;
    struct Known {
        uint32_t number;
        FieldValues last{};
    };
    std::map<Shape, Known> known;
    std::vector<Shape> shapes;
    Column times, numbers;
    std::array<Column, field_count> columns;
    uint64_t last_ns = 0;
    for (const TimedEvent& timed : trace.events) {
        const trace::Event& event = timed.event;
        const Shape shape{static_cast<uint32_t>(event.kind), event.space, event.other_space, event.flags, event.queue};
        const auto [place, is_new] = known.try_emplace(shape, Known{static_cast<uint32_t>(shapes.size())});
        if (is_new)
            shapes.push_back(shape);
        times.add(timed.ns - last_ns);
        last_ns = timed.ns;
        numbers.add(place->second.number);
        const FieldValues values = fields_of(event);
        for (size_t i = 0; i < field_count; ++i)
            columns[i].add_signed(values[i] - place->second.last[i]);
        place->second.last = values;
    }
    out << "count:" << trace.events.size() << ",\nshapes:[";
    for (const Shape& shape : shapes) {
        out << (&shape == shapes.data() ? "[" : ",[");
        for (const uint32_t& value : shape)
            out << (&value == shape.data() ? "" : ",") << value;
        out << "]";
    }
    out << "],\n";
    times.write("ns", out);
    numbers.write("shape", out);
    constexpr std::array<const char*, field_count> names{"storage", "address", "size", "extra"};
    for (size_t i = 0; i < field_count; ++i)
        columns[i].write(names[i], out);
}

void write_data(const TraceFile& trace, std::ostream& out) {
    out << "{\n";
    write_events(trace, out);
    out << "process:" << trace.header.process << ",\ntexts:{";
    bool first = true;
    for (const auto& [id, text] : trace.texts) {
        out << (std::exchange(first, false) ? "" : ",") << id << ":";
        write_json_string(text, out);
    }
    out << "}}";
}

}  // namespace

void write_page(const TraceFile& trace, std::ostream& out) {
    const std::string_view page(reinterpret_cast<const char*>(viewer_page), sizeof viewer_page);
    constexpr std::string_view mark = "/*TRACE*/";
    const size_t place = page.find(mark);
    out << page.substr(0, place);
    write_data(trace, out);
    out << page.substr(place + mark.size());
}

}  // namespace polder::tool
