// SPDX-License-Identifier: Apache-2.0
#include "quantized/choose/weight_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/sha256.hpp"
#include "quantized/choose/scheme_fit.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "quantized/names/module_name.hpp"
#include "quantized/rewrite/target_options.hpp"
#include "tensorcast/budget.hpp"
#include "tensorcast/version.hpp"

namespace tensorcast::file_conversion {
namespace {

using quantized::ChosenWeight;

std::string name_of(const SchemeCandidate& candidate) {
  return candidate.recipe.empty() ? candidate.scheme : candidate.scheme + ":" + candidate.recipe;
}

std::string decibels(const SchemeFit& fit) {
  const double snr = fit.snr_db();
  return std::isfinite(snr) ? fmt::format("{:.1f} dB", snr) : std::string("exact");
}

class BudgetChoice {
 public:
  BudgetChoice(std::span<ChosenWeight> weights, const quantized::FoundLayers& found, formats::Reader& reader,
               const quantized::QuantizeRequest& request, const ConversionRun& run)
      : weights_(weights),
        found_(found),
        reader_(reader),
        decoded_(reader, found.layers),
        request_(request),
        run_(run) {}

  Result<void> choose() {
    TRY(read_candidates());
    std::vector<std::string> schemes;
    for (const SchemeCandidate& candidate : candidates_) schemes.push_back(candidate.scheme);
    writer_ = TRY(quantized::choose_spelling(schemes, request_));
    for (ChosenWeight& weight : weights_) leave_unfit(weight);
    quantized::leave_joined(weights_, found_, *writer_);
    std::vector<ChosenWeight*> open;  // those that are measured
    for (ChosenWeight& weight : weights_) {
      if (weight.unfit.empty()) open.push_back(&weight);
    }
    if (open.empty()) {  // an error, which names the first
      for (ChosenWeight& weight : weights_) weight.unfit.clear(), open.push_back(&weight);
    }
    for (const ChosenWeight* weight : open) total_ += element_bytes(*weight);
    for (const ChosenWeight* weight : open) TRY(at_tensor(found_.layers[weight->layer].name, measure(*weight)));
    const std::vector<std::size_t> chosen = TRY(choose_within_budget(measured_, request_.targets.budget));
    for (std::size_t i = 0; i < open.size(); ++i) {
      ChosenWeight& weight = *open[i];
      if (!weight.scheme.empty()) continue;
      const SchemeCandidate& candidate = candidates_[chosen[i]];
      weight.scheme = candidate.scheme;
      weight.recipe = candidate.recipe;
      weight.choice = choice_text(measured_[i].candidates, chosen[i]);
    }
    return {};
  }

 private:
  [[nodiscard]] bool is_beside_mxfp4() const {
    return std::ranges::any_of(candidates_, [](const SchemeCandidate& other) { return other.scheme == "mxfp4"; });
  }

  [[nodiscard]] Result<quantized::PlannedWeight> plan(const ChosenWeight& weight,
                                                      const SchemeCandidate& candidate) const {
    if (request_.why_not_loaded) {
      const std::string why = request_.why_not_loaded(found_.layers[weight.layer], candidate.scheme);
      if (!why.empty()) return unsupported(why);
    }
    const ChosenWeight tried{.layer = weight.layer, .scheme = candidate.scheme, .recipe = candidate.recipe};
    return quantized::plan_weight(found_.layers[weight.layer], tried, reader_.tensors(), request_, *writer_,
                                  is_beside_mxfp4());
  }

  // Of a weight that no candidate fits; what else is wrong with it is told as it is measured.
  void leave_unfit(ChosenWeight& weight) const {
    std::string first;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (!may_have(weight, c)) continue;
      const Result<quantized::PlannedWeight> planned = plan(weight, candidates_[c]);
      if (planned || !quantized::is_unfit(planned.error(), found_.layers[weight.layer], candidates_[c].scheme, request_,
                                          *writer_)) {
        return;
      }
      if (first.empty()) first = fmt::format("cannot be {}: {}", candidates_[c].scheme, planned.error().message);
    }
    weight.unfit = std::move(first);
  }

  // Those of the request, then the schemes that weights have already.
  Result<void> read_candidates() {
    const QuantizeTargets& targets = request_.targets;
    if (targets.candidates.empty()) candidates_ = default_scheme_candidates();
    for (const std::string& text : targets.candidates) {
      candidates_.push_back(TRY(parse_scheme_candidate(text)));
    }
    offered_ = candidates_.size();
    const auto is_any = [&](auto holds) { return std::ranges::any_of(candidates_, holds); };
    if (!is_any([&](const SchemeCandidate& candidate) {
          return targets.recipe.empty() || find_quantize_recipe(candidate.scheme, targets.recipe) != nullptr;
        })) {
      return invalid(fmt::format("no candidate has a recipe \"{}\"", targets.recipe));
    }
    std::vector<std::string_view> schemes;
    for (const SchemeCandidate& candidate : candidates_) schemes.push_back(candidate.scheme);
    TRY(quantized::check_scheme_options(targets, schemes));
    for (const ChosenWeight& weight : weights_) {
      const SchemeCandidate fixed{weight.scheme, weight.recipe};
      const auto known =
          std::ranges::find(candidates_.begin() + static_cast<std::ptrdiff_t>(offered_), candidates_.end(), fixed);
      if (weight.scheme.empty()) continue;
      if (known == candidates_.end()) candidates_.push_back(fixed);
      const std::string whole = quantized::one_scheme_module(found_.layers[weight.layer].name);
      if (!whole.empty()) joined_.emplace(whole, fixed);
    }
    return {};
  }

  // A weight that loaders join with one whose scheme is known gets that scheme.
  [[nodiscard]] bool may_have(const ChosenWeight& weight, std::size_t candidate) const {
    SchemeCandidate fixed{weight.scheme, weight.recipe};
    if (weight.scheme.empty()) {
      const auto joined = joined_.find(quantized::one_scheme_module(found_.layers[weight.layer].name));
      if (joined == joined_.end()) return candidate < offered_;
      fixed = joined->second;
    }
    return candidate >= offered_ && candidates_[candidate] == fixed;
  }

  [[nodiscard]] std::uint64_t element_count_of(const ChosenWeight& weight) const {
    return found_.layers[weight.layer].rows() * found_.layers[weight.layer].columns();
  }

  [[nodiscard]] DType numbers_of(const quantized::Layer& layer) const {
    return layer.is_quantized() ? DType::float32 : reader_.tensors()[layer.codes()].dtype;
  }

  // What measuring reads; nothing of a weight whose scheme is known.
  [[nodiscard]] std::uint64_t element_bytes(const ChosenWeight& weight) const {
    if (!weight.scheme.empty()) return 0;
    return 2 * storage_bytes(numbers_of(found_.layers[weight.layer]), element_count_of(weight));
  }

  Result<void> measure(const ChosenWeight& weight) {
    const quantized::Layer& layer = found_.layers[weight.layer];
    BudgetWeight& measured = measured_.emplace_back();
    measured.name = layer.name;
    measured.count = element_count_of(weight);
    std::vector<FittedScheme> fitted;
    std::vector<double> bits;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      measured.ruled_out.push_back(!may_have(weight, c));
      if (measured.ruled_out.back()) {
        fitted.push_back({candidates_[c], unsupported("rules name another scheme")});
        bits.push_back(0.0);
        continue;
      }
      Result<quantized::PlannedWeight> planned = plan(weight, candidates_[c]);
      if (!planned && !weight.scheme.empty()) return std::move(planned).error();
      // Without elements there is no average to add to.
      const double elements = static_cast<double>(measured.count);
      bits.push_back(planned && measured.count != 0 ? 8.0 * static_cast<double>(planned->bytes()) / elements : 0.0);
      if (!planned) {
        fitted.push_back({candidates_[c], std::move(planned).error()});
      } else {
        fitted.push_back({candidates_[c], std::move(planned->layout)});
      }
    }
    if (weight.scheme.empty()) {
      TRY(measure_numbers(weight, std::move(fitted), measured));
    } else {
      for (const FittedScheme& each : fitted) {
        measured.candidates.push_back({.scheme = each.candidate.scheme});
        if (!each.layout) measured.candidates.back().problem = each.layout.error().message;
      }
    }
    // What is written has the shape of the weight, too, and padding.
    for (std::size_t c = 0; c < bits.size(); ++c) measured.candidates[c].bits = bits[c];
    return {};
  }

  Result<void> measure_numbers(const ChosenWeight& weight, std::vector<FittedScheme> fitted, BudgetWeight& measured) {
    const quantized::Layer& layer = found_.layers[weight.layer];
    if (run_.on_progress && !run_.on_progress({.bytes_done = done_, .bytes_total = total_, .tensor = layer.name})) {
      return cancelled();
    }
    const std::size_t index = layer.is_quantized() ? reader_.tensors().size() + weight.layer : layer.codes();
    formats::Reader& reader = layer.is_quantized() ? static_cast<formats::Reader&>(decoded_) : reader_;
    TensorStats stats = TRY(count_numbers(reader, index, run_.execution));
    TRY(fit_layouts(reader, index, std::move(fitted), run_.execution, stats));
    measured.candidates = std::move(stats.schemes);
    done_ += element_bytes(weight);
    return {};
  }

  // "20.9 dB at 4.5 bits; mxfp4 18.5 dB at 4.25, mxfp8 31.5 dB at 8.25"
  [[nodiscard]] std::string choice_text(const std::vector<SchemeFit>& fits, std::size_t chosen) const {
    std::string text = fmt::format("{} at {:.4g} bits", decibels(fits[chosen]), fits[chosen].bits);
    const char* separator = "; ";
    for (std::size_t c = 0; c < offered_; ++c) {
      if (c == chosen || !fits[c].problem.empty()) continue;
      text += fmt::format("{}{} {} at {:.4g}", separator, name_of(candidates_[c]), decibels(fits[c]), fits[c].bits);
      separator = ", ";
    }
    return text;
  }

  std::span<ChosenWeight> weights_;
  const quantized::FoundLayers& found_;
  formats::Reader& reader_;
  quantized::DecodedReader decoded_;
  const quantized::QuantizeRequest& request_;
  const ConversionRun& run_;
  const quantized::Spelling* writer_ = nullptr;
  std::vector<SchemeCandidate> candidates_;
  std::size_t offered_ = 0;                        // of candidates_, those that are chosen from
  std::map<std::string, SchemeCandidate> joined_;  // what rules say, by the modules that loaders make of several
  std::vector<BudgetWeight> measured_;
  std::uint64_t done_ = 0, total_ = 0;  // bytes
};

std::string basis_of(std::span<const ChosenWeight> weights, const quantized::FoundLayers& found,
                     const quantized::QuantizeRequest& request, const std::string& source) {
  nlohmann::json json = {version(), source, request.importance == nullptr ? "" : request.importance->version()};
  options::for_each(options::quantize_targets, [&](const auto& option) {
    json.push_back({option.name, request.targets.*option.member});
  });
  for (const ChosenWeight& weight : weights) {
    json.push_back({found.layers[weight.layer].name, weight.scheme, weight.recipe});
  }
  return io::sha256_of(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Returns whether the choice has all weights that have no scheme yet.
bool take(const MadeChoice& known, std::span<ChosenWeight> weights, const quantized::FoundLayers& found) {
  std::vector<ChosenWeight> taken(weights.begin(), weights.end());
  auto next = known.weights.begin();
  for (ChosenWeight& weight : taken) {
    if (!weight.scheme.empty()) continue;
    if (next == known.weights.end() || next->name != found.layers[weight.layer].name) return false;
    if (next->scheme.empty()) {  // unfit
      weight.unfit = next++->choice;
      continue;
    }
    if (find_quantize_recipe(next->scheme, next->recipe) == nullptr) return false;
    weight.scheme = next->scheme;
    weight.recipe = next->recipe;
    weight.choice = next->choice;
    ++next;
  }
  if (next != known.weights.end()) return false;
  std::ranges::move(taken, weights.begin());
  return true;
}

}  // namespace

Result<void> choose_within_budget(std::span<ChosenWeight> weights, const quantized::FoundLayers& found,
                                  formats::Reader& reader, const quantized::QuantizeRequest& request,
                                  const ConversionRun& run, BudgetMemory* memory) {
  if (memory == nullptr) return BudgetChoice(weights, found, reader, request, run).choose();
  MadeChoice made{.basis = basis_of(weights, found, request, memory->source)};
  for (const MadeChoice& known : memory->known) {
    if (known.basis != made.basis || !take(known, weights, found)) continue;
    memory->made.push_back(known);
    return {};
  }
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].scheme.empty()) open.push_back(i);
  }
  TRY(BudgetChoice(weights, found, reader, request, run).choose());
  for (const std::size_t i : open) {
    const ChosenWeight& weight = weights[i];
    const std::string& choice = weight.unfit.empty() ? weight.choice : weight.unfit;
    made.weights.push_back({found.layers[weight.layer].name, weight.scheme, weight.recipe, choice});
  }
  memory->made.push_back(std::move(made));
  return {};
}

}  // namespace tensorcast::file_conversion
