// SPDX-License-Identifier: Apache-2.0
// Lists the contents of files.
#include <algorithm>
#include <iterator>

#include "convert/select/pattern_list.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "quantized/detect/layer_summary.hpp"
#include "quantized/layout/open_input.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<FileSummary> inspect(const InspectRequest& request) {
  return guarded(request.input, [&]() -> Result<FileSummary> {
    const file_conversion::OpenedInput input = TRY(file_conversion::open_model_file(
        request.input, request.input_format, {.raw = request.raw, .from = request.from}));
    FileSummary summary = file_conversion::summary_of(input);
    const quantized::FoundLayers found = file_conversion::layers_of(input);
    summary.layers = quantized::summary_of(found, input.reader->tensors());
    quantized::ScaleRemarks remarks = quantized::scale_remarks(found, *input.reader);
    std::ranges::move(remarks.warnings, std::back_inserter(summary.warnings));
    summary.notes = std::move(remarks.notes);
    return summary;
  });
}

Result<std::vector<std::size_t>> matching_tensors(const FileSummary& file, const std::vector<std::string>& patterns) {
  return guarded([&]() -> Result<std::vector<std::size_t>> {
    file_conversion::PatternList list = TRY(file_conversion::PatternList::compile(patterns));
    std::vector<std::size_t> matching;
    for (std::size_t index = 0; index < file.tensors.size(); ++index) {
      if (list.matches(file.tensors[index].name)) matching.push_back(index);
    }
    TRY(list.check_all_matched("include"));
    return matching;
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
