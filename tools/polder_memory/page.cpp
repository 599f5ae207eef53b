// The page: apps/memory_viewer/viewer.html with the trace's columns in it, in base64.
#include "exports.h"
#include "viewer.inc"

#include <cstring>
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

// One value of each event. JavaScript's numbers are doubles: sizes and addresses beyond 2^53 lose their last bits.
template <class T, class Value>
void write_column(const char* name, const TraceFile& trace, std::ostream& out, Value&& value) {
    std::vector<T> column;
    column.reserve(trace.events.size());
    for (const TimedEvent& timed : trace.events)
        column.push_back(static_cast<T>(value(timed)));
    out << name << ":\"";
    write_base64(reinterpret_cast<const std::byte*>(column.data()), column.size() * sizeof(T), out);
    out << "\",\n";
}

void write_data(const TraceFile& trace, std::ostream& out) {
    out << "{\n";
    write_column<double>("ns", trace, out, [](const TimedEvent& timed) { return timed.ns; });
    write_column<uint8_t>("kind", trace, out, [](const TimedEvent& timed) { return timed.event.kind; });
    write_column<uint8_t>("space", trace, out, [](const TimedEvent& timed) { return timed.event.space; });
    write_column<uint8_t>("other", trace, out, [](const TimedEvent& timed) { return timed.event.other_space; });
    write_column<uint8_t>("flags", trace, out, [](const TimedEvent& timed) { return timed.event.flags; });
    write_column<uint32_t>("queue", trace, out, [](const TimedEvent& timed) { return timed.event.queue; });
    write_column<uint32_t>("storage", trace, out, [](const TimedEvent& timed) { return timed.event.storage; });
    write_column<double>("address", trace, out, [](const TimedEvent& timed) { return timed.event.address; });
    write_column<double>("size", trace, out, [](const TimedEvent& timed) { return timed.event.size; });
    write_column<double>("extra", trace, out, [](const TimedEvent& timed) { return timed.event.extra; });
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
