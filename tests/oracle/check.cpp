// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "codec/reference_cast.hpp"
#include "options/cast_report.hpp"
#include "tensorcast/cast.hpp"

namespace oracle {
namespace {

namespace tc = tensorcast;

constexpr std::size_t chunk_count = 32768;
constexpr std::size_t enough_complaints = 5;
constexpr std::byte guard{0xA5};
constexpr std::size_t guard_bytes = 64;

tc::CastOptions cpp_options(const tc_cast_options& options) {
  tc::CastOptions result;
  result.opset = options.opset;
  result.saturate = options.saturate != 0;
  result.round_mode = static_cast<tc::RoundMode>(options.round_mode);
  result.out_of_range = static_cast<tc::OutOfRange>(options.out_of_range);
  result.rounding = static_cast<tc::Rounding>(options.rounding);
  result.invalid = static_cast<tc::Invalid>(options.invalid);
  result.fnuz_inf = static_cast<tc::FnuzInf>(options.fnuz_inf);
  result.float_string = static_cast<tc::FloatString>(options.float_string);
  result.scale = options.scale;
  result.seed = options.seed;
  result.inexact = static_cast<tc::Inexact>(options.inexact);
  return result;
}

std::uint16_t from_engine(std::uint16_t engine_events) {
  static constexpr std::pair<std::uint16_t, std::uint16_t> names[] = {
      {tc::codec::event_inexact, inexact},     {tc::codec::event_overflowed, overflowed},
      {tc::codec::event_saturated, saturated}, {tc::codec::event_underflowed, underflowed},
      {tc::codec::event_nan_made, nan_made},   {tc::codec::event_nan_lost, nan_lost},
      {tc::codec::event_wrapped, wrapped},     {tc::codec::event_sign_lost, sign_lost}};
  std::uint16_t events = 0;
  for (const auto& [theirs, ours] : names) {
    if ((engine_events & theirs) != 0) events |= ours;
  }
  return events;
}

std::string hex(std::uint64_t code) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(code));
  return text;
}

// The numbers of CastReport, by the definitions beside its fields.
struct ExpectedReport {
  tc::CastReport numbers;
  long double signal = 0, noise = 0;

  void add(const Exact& source, const Outcome& outcome, const Exact& result) {
    ++numbers.count;
    numbers.overflowed += (outcome.events & overflowed) != 0;
    numbers.saturated += (outcome.events & saturated) != 0;
    numbers.underflowed_to_zero += (outcome.events & underflowed) != 0;
    numbers.inexact += (outcome.events & inexact) != 0;
    numbers.nan_made += (outcome.events & nan_made) != 0;
    numbers.nan_lost += (outcome.events & nan_lost) != 0;
    numbers.wrapped += (outcome.events & wrapped) != 0;
    numbers.sign_lost += (outcome.events & sign_lost) != 0;
    if (!source.finite() || !result.finite()) return;
    const long double x = source.value.get_d();
    signal += x * x;
    if ((outcome.events & inexact) == 0) return;
    const mpq_class error = abs(mpq_class(result.value - source.value));
    const double error_d = error.get_d();
    numbers.max_abs_error = std::max(numbers.max_abs_error, error_d);
    if (!source.zero())
      numbers.max_rel_error = std::max(numbers.max_rel_error, mpq_class(error / abs(source.value)).get_d());
    noise += static_cast<long double>(error_d) * error_d;
  }

  // Compares every number of the list, so that one that `add` does not know is found.
  [[nodiscard]] std::string fault(const tc::CastReport& got, double sum_tolerance) const {
    tc::CastReport want = numbers;
    want.signal_power = static_cast<double>(signal);
    want.noise_power = static_cast<double>(noise);
    std::string faults;
    tc::options::for_each(tc::options::cast_report, [&](const auto& number) {
      const auto have = got.*number.member, wanted = want.*number.member;
      bool near = have == wanted;
      if constexpr (std::is_floating_point_v<decltype(have)>) {
        const double tolerance = number.merged == tc::options::Merged::sum ? sum_tolerance : 1e-15;
        near = near || std::fabs(have - wanted) <= tolerance * std::fabs(wanted) + 1e-300;
      }
      if (!near)
        faults += std::string(number.name) + " is " + std::to_string(have) + ", not " + std::to_string(wanted) + "; ";
    });
    return faults;
  }
};

// One chunk of elements under one set of options.
class ChunkCheck {
 public:
  ChunkCheck(Type from, std::span<const std::uint64_t> codes, Type to, std::span<const Conversion> conversions,
             const tc_cast_options& options, std::vector<std::string>& complaints)
      : from_(from), to_(to), codes_(codes), conversions_(conversions), options_(options), complaints_(complaints) {}

  void run() {
    expected_.reserve(codes_.size());
    for (const Conversion& conversion : conversions_) expected_.push_back(conversion.under(options_));
    check_reference();
    check_refusals();
    check_accepted();
  }

 private:
  void complain(std::size_t index, const std::string& what) {
    if (complaints_.size() < enough_complaints) {
      complaints_.push_back(what + "\n  replay: " + replay_command(from_, codes_[index], to_, options_));
    }
  }

  void check_reference() {
    const tc::Result<tc::codec::Policy> policy =
        tc::codec::resolve_policy(cpp_options(options_), static_cast<tc::DType>(from_), static_cast<tc::DType>(to_));
    if (!policy) return complain(0, "resolve_policy refuses: " + policy.error().message);
    for (std::size_t i = 0; i < codes_.size(); ++i) {
      const tc::codec::Encoded got =
          tc::codec::cast_code(static_cast<tc::DType>(from_), codes_[i], static_cast<tc::DType>(to_), *policy);
      const bool refused = (got.events & tc::codec::event_error) != 0;
      if (refused != expected_[i].refused) {
        complain(i, refused ? "reference refuses without reason" : "reference should refuse");
      } else if (refused) {
        continue;
      } else if (got.bits != expected_[i].code) {
        complain(i, "reference gives " + hex(got.bits) + ", not " + hex(expected_[i].code));
      } else if (from_engine(got.events) != expected_[i].events) {
        complain(i, "reference reports " + describe_events(from_engine(got.events)) + ", not " +
                        describe_events(expected_[i].events));
      }
    }
  }

  // Converts all elements: the error names the first that fails. Then each failing element alone: an error each.
  void check_refusals() {
    const auto refused = [](const Outcome& outcome) { return outcome.refused; };
    const auto first = std::find_if(expected_.begin(), expected_.end(), refused);
    if (first == expected_.end()) return;
    const auto index = static_cast<std::size_t>(first - expected_.begin());
    const CAbiResult all = run_tc_cast(from_, codes_, to_, options_);
    const std::string name = "element " + std::to_string(index) + ":";
    if (all.status != TC_OUT_OF_RANGE) {
      complain(index, "tc_cast should fail with TC_OUT_OF_RANGE, status is " + std::to_string(all.status));
    } else if (all.message.find(name) == std::string::npos) {
      complain(index, "the error should name " + name + " but says: " + all.message);
    }
    int singles = 0;
    for (std::size_t i = index; i < codes_.size() && singles < 24; i += 1 + codes_.size() / 97) {
      if (!expected_[i].refused) continue;
      ++singles;
      const CAbiResult one = run_tc_cast(from_, codes_.subspan(i, 1), to_, options_);
      if (one.status != TC_OUT_OF_RANGE) complain(i, "tc_cast should refuse this element alone");
    }
  }

  void check_accepted() {
    std::vector<std::size_t> kept;
    std::vector<std::uint64_t> codes;
    for (std::size_t i = 0; i < codes_.size(); ++i) {
      if (expected_[i].refused) continue;
      kept.push_back(i);
      codes.push_back(codes_[i]);
    }
    if (kept.empty()) return;
    const CAbiResult got = run_tc_cast(from_, codes, to_, options_, codes.size() % 7);
    if (got.status != TC_OK) return complain(kept[0], "tc_cast fails: " + got.message);
    if (!got.storage_fault.empty()) complain(kept[0], "tc_cast " + got.storage_fault);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const Outcome& outcome = expected_[kept[i]];
      if (got.codes[i] != outcome.code) {
        complain(kept[i], "tc_cast gives " + hex(got.codes[i]) + ", not " + hex(outcome.code) + " (element " +
                              std::to_string(i) + " of " + std::to_string(kept.size()) + ")");
      }
    }
    check_report(kept, codes);
  }

  void check_report(const std::vector<std::size_t>& kept, const std::vector<std::uint64_t>& codes) {
    ExpectedReport expected;
    for (const std::size_t i : kept) {
      expected.add(conversions_[i].scaled_source(), expected_[i], decode(to_, expected_[i].code));
    }
    const std::vector<std::byte> source = pack(from_, codes);
    std::vector<std::byte> target(tc_storage_bytes(to_, codes.size()));
    const std::int64_t shape[] = {static_cast<std::int64_t>(codes.size())};
    tc::CastReport report;
    const tc::Result<void> done = tc::cast({static_cast<tc::DType>(from_), shape, source},
                                           {static_cast<tc::DType>(to_), shape, target}, cpp_options(options_), report);
    if (!done) return complain(kept[0], "cast with a report fails: " + done.error().message);
    // Sums may be rounded, of short floats in float32 now and then (CastReport); they must not be wrong.
    const auto from = static_cast<tc::DType>(from_);
    const bool is_short = from == tc::DType::float16 || from == tc::DType::bfloat16;
    const std::string fault = expected.fault(report, is_short ? 0x1p-22 : 1e-9);
    if (!fault.empty()) complain(kept[0], "the report of " + std::to_string(codes.size()) + " elements: " + fault);
    const std::vector<std::uint64_t> got = unpack(to_, target, codes.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (got[i] != expected_[kept[i]].code) complain(kept[i], "cast with a report gives " + hex(got[i]));
    }
  }

  Type from_, to_;
  std::span<const std::uint64_t> codes_;
  std::span<const Conversion> conversions_;
  const tc_cast_options& options_;
  std::vector<std::string>& complaints_;
  std::vector<Outcome> expected_;
};

}  // namespace

std::vector<std::byte> pack(Type type, std::span<const std::uint64_t> codes) {
  const auto bits = static_cast<std::size_t>(info(type).bits);
  std::vector<std::byte> storage((codes.size() * bits + 7) / 8);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (bits < 8) {
      for (std::size_t j = 0; j < bits; ++j) {
        const std::size_t at = i * bits + j;
        storage[at / 8] |= static_cast<std::byte>((codes[i] >> j & 1) << at % 8);
      }
    } else {
      std::memcpy(&storage[i * bits / 8], &codes[i], bits / 8);  // little endian
    }
  }
  return storage;
}

std::vector<std::uint64_t> unpack(Type type, std::span<const std::byte> storage, std::size_t count) {
  const auto bits = static_cast<std::size_t>(info(type).bits);
  std::vector<std::uint64_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (bits < 8) {
      for (std::size_t j = 0; j < bits; ++j) {
        const std::size_t at = i * bits + j;
        codes[i] |= (std::to_integer<std::uint64_t>(storage[at / 8]) >> at % 8 & 1) << j;
      }
    } else {
      std::memcpy(&codes[i], &storage[i * bits / 8], bits / 8);
    }
  }
  return codes;
}

CAbiResult run_tc_cast(Type from, std::span<const std::uint64_t> codes, Type to, const tc_cast_options& options,
                       std::size_t misalignment) {
  const std::vector<std::byte> source = pack(from, codes);
  std::vector<std::byte> shifted(source.size() + misalignment);
  std::copy(source.begin(), source.end(), shifted.begin() + static_cast<std::ptrdiff_t>(misalignment));
  const std::size_t target_bytes = (codes.size() * static_cast<std::size_t>(info(to).bits) + 7) / 8;
  const std::size_t lead = guard_bytes + misalignment;
  std::vector<std::byte> target(lead + target_bytes + guard_bytes, guard);

  CAbiResult result;
  result.status = tc_cast(shifted.data() + misalignment, from, target.data() + lead, to, codes.size(), &options);
  if (result.status != TC_OK) result.message = tc_last_error();
  const auto first = target.begin() + static_cast<std::ptrdiff_t>(lead);
  const auto last = first + static_cast<std::ptrdiff_t>(target_bytes);
  const auto is_guard = [](std::byte byte) { return byte == guard; };
  if (!std::all_of(target.begin(), first, is_guard) || !std::all_of(last, target.end(), is_guard)) {
    result.storage_fault = "writes outside the target";
  }
  if (result.status == TC_OK) {
    result.codes = unpack(to, {first, last}, codes.size());
    if (!std::equal(first, last, pack(to, result.codes).begin())) result.storage_fault = "leaves bits in the tail";
  }
  return result;
}

std::vector<tc_cast_options> option_sets(Type from, Type to) {
  const tc_cast_options defaults = default_options();
  std::vector<tc_cast_options> sets = {defaults};
  const int first = std::max(info(from).first_opset, info(to).first_opset);
  const bool from_real = is_float(from);
  const auto add = [&](auto... changes) {
    tc_cast_options set = defaults;
    (changes(set), ...);
    if (opset_of(set) >= first) sets.push_back(set);
  };
  const auto opset = [](int value) { return [value](tc_cast_options& o) { o.opset = value; }; };
  const auto saturate = [](int value) { return [value](tc_cast_options& o) { o.saturate = value; }; };
  const auto round_mode = [](int value) { return [value](tc_cast_options& o) { o.round_mode = value; }; };
  const auto range = [](int value) { return [value](tc_cast_options& o) { o.out_of_range = value; }; };
  const auto rounding = [](int value) { return [value](tc_cast_options& o) { o.rounding = value; }; };
  const auto invalid = [](int value) { return [value](tc_cast_options& o) { o.invalid = value; }; };
  const auto fnuz_inf = [](int value) { return [value](tc_cast_options& o) { o.fnuz_inf = value; }; };
  const auto text_form = [](int value) { return [value](tc_cast_options& o) { o.float_string = value; }; };

  // Every word, and what the largest numbers do with it.
  const bool rounds = is_float(to) || (is_integer(to) && from_real);
  for (int word = TC_ROUNDING_NEAREST_AWAY; rounds && word <= TC_ROUNDING_TO_ODD; ++word) {
    add(rounding(word));
    if (is_float8(to) || to == e8m0) add(rounding(word), saturate(0));
    if (word % 2 == 0) add(rounding(word), range(2)), add(rounding(word), range(3));
  }
  if (to == e8m0) add(rounding(TC_ROUNDING_NEAREST_EVEN));
  if (is_float8(to)) {
    add(saturate(0));
    for (const int sat : {0, 1})
      add(opset(std::max(first, 19)), saturate(sat)), add(opset(23), saturate(sat), fnuz_inf(1));
    for (const int policy : {2, 3}) add(range(policy)), add(range(policy), saturate(0));
    add(opset(23), range(2));
    add(fnuz_inf(1), round_mode(2), range(3), rounding(1), invalid(1));
    if (to == e5m3fnu) add(invalid(1)), add(saturate(0), invalid(1));
  } else if (to == e8m0) {
    for (const int sat : {0, 1}) {
      for (const int mode : {0, 1, 2})
        add(opset(24), saturate(sat), round_mode(mode)), add(saturate(sat), round_mode(mode), invalid(1));
    }
    for (const int policy : {2, 3}) add(range(policy), round_mode(1)), add(range(policy), saturate(0));
    add(range(1), rounding(1), fnuz_inf(1), text_form(1));
  } else if (is_float(to) && info(to).special == Special::none) {
    for (const int bad : {0, 1}) add(opset(23), invalid(bad)), add(opset(24), invalid(bad)), add(invalid(bad));
    add(saturate(0), round_mode(1), range(1), rounding(1), fnuz_inf(1));
    add(range(2)), add(range(3)), add(range(3), invalid(1));
  } else if (is_integer(to) && from_real) {
    for (const int nearest : {0, 1}) {
      for (const int policy : {0, 1, 2, 3}) add(range(policy), rounding(nearest));
      for (const int policy : {0, 2, 3}) add(range(policy), rounding(nearest), invalid(1));
      add(opset(21), rounding(nearest)), add(opset(23), rounding(nearest)), add(opset(23), range(1), rounding(nearest));
    }
    add(saturate(0), round_mode(1), fnuz_inf(1), text_form(2));
  } else {
    add(saturate(0), round_mode(1), range(3), rounding(1), invalid(1), fnuz_inf(1), text_form(1));
    add(opset(23), range(2)), add(opset(23), range(1));
  }
  return sets;
}

std::string replay_command(Type from, std::uint64_t code, Type to, const tc_cast_options& options) {
  std::string command = std::string("oracle_replay ") + info(from).name + " " + hex(code) + " " + info(to).name;
  const auto add = [&](const char* name, int value, int usual) {
    if (value != usual) command += std::string(" ") + name + "=" + std::to_string(value);
  };
  add("opset", options.opset, 0);
  add("saturate", options.saturate, 1);
  add("round_mode", options.round_mode, 0);
  add("out_of_range", options.out_of_range, 0);
  add("rounding", options.rounding, 0);
  add("invalid", options.invalid, 0);
  add("fnuz_inf", options.fnuz_inf, 0);
  add("float_string", options.float_string, 0);
  if (options.scale != 1.0) {
    char text[40];
    std::snprintf(text, sizeof text, " scale=%a", options.scale);
    command += text;
  }
  return command;
}

std::vector<std::string> disagreements(Type from, std::span<const std::uint64_t> codes, Type to,
                                       std::span<const tc_cast_options> sets) {
  std::vector<std::string> complaints;
  const bool listed = info(from).bits <= 16;
  for (std::size_t begin = 0; begin < codes.size(); begin += chunk_count) {
    const auto chunk = codes.subspan(begin, std::min(chunk_count, codes.size() - begin));
    std::vector<Conversion> conversions;
    conversions.reserve(chunk.size());
    for (const std::uint64_t code : chunk) {
      conversions.emplace_back(from, code, listed ? all_codes(from)[code] : decode(from, code), to, sets[0].scale);
    }
    for (const tc_cast_options& options : sets) ChunkCheck(from, chunk, to, conversions, options, complaints).run();
    if (complaints.size() >= enough_complaints) break;
  }
  return complaints;
}

}  // namespace oracle
