#include "report.hpp"

#include <nanobind/operators.h>

#include <cstdint>
#include <cstring>

#include "tensorcast/cast.hpp"

namespace tensorcast::python {
namespace {

namespace nb = nanobind;

template <class Value>
struct Field {
  const char* name;
  Value CastReport::*value;
  const char* doc;
};

constexpr Field<std::uint64_t> counts[] = {
    {"count", &CastReport::count, "Elements converted."},
    {"overflowed", &CastReport::overflowed, "Finite, out of the target's range, became infinite or NaN."},
    {"saturated", &CastReport::saturated, "Out of the target's range, became the target's extreme."},
    {"underflowed_to_zero", &CastReport::underflowed_to_zero, "Nonzero, became zero."},
    {"inexact", &CastReport::inexact, "Finite in and out, value changed."},
    {"nan_made", &CastReport::nan_made, "Was not NaN, became NaN."},
    {"nan_lost", &CastReport::nan_lost, "Was NaN, became a number."},
    {"wrapped", &CastReport::wrapped, "Out of the target integer's range, kept the low bits."},
};
constexpr Field<double> measures[] = {
    {"max_abs_error", &CastReport::max_abs_error, "Over elements finite in and out."},
    {"max_rel_error", &CastReport::max_rel_error, "The same, over nonzero sources."},
    {"signal_power", &CastReport::signal_power, "Sum of squares of the sources finite in and out."},
    {"noise_power", &CastReport::noise_power, "Sum of squares of the errors of the same elements."},
};

nb::dict as_dict(const CastReport& report) {
  nb::dict fields;
  for (const auto& field : counts) fields[field.name] = report.*field.value;
  for (const auto& field : measures) fields[field.name] = report.*field.value;
  fields["snr_db"] = report.snr_db();
  return fields;
}

template <class Value>
void set_field(CastReport& report, const Field<Value>& field, const nb::dict& fields) {
  if (fields.contains(field.name)) report.*field.value = nb::cast<Value>(fields[field.name]);
}

CastReport from_dict(const nb::dict& fields) {
  CastReport report;
  for (const auto& field : counts) set_field(report, field, fields);
  for (const auto& field : measures) set_field(report, field, fields);
  return report;
}

// Compares bits, so that a NaN equals itself.
bool equal(const CastReport& a, const CastReport& b) {
  for (const auto& field : counts) {
    if (a.*field.value != b.*field.value) return false;
  }
  for (const auto& field : measures) {
    if (std::memcmp(&(a.*field.value), &(b.*field.value), sizeof(double)) != 0) return false;
  }
  return true;
}

}  // namespace

void bind_report(nb::module_& module) {
  nb::class_<CastReport> report(module, "CastReport", nb::dynamic_attr(),
                                "What a conversion did to the numbers. Errors are measured against source * scale.");
  report.def(nb::init<>(), "The report of no elements.");
  for (const auto& field : counts) {
    report.def_prop_ro(
        field.name, [value = field.value](const CastReport& self) { return self.*value; }, field.doc);
  }
  for (const auto& field : measures) {
    report.def_prop_ro(
        field.name, [value = field.value](const CastReport& self) { return self.*value; }, field.doc);
  }
  report.def_prop_ro("snr_db", &CastReport::snr_db, "Signal to noise in decibels; infinity without noise.")
      .def("merge", &CastReport::merge, nb::arg("other"), "Adds another report, as if both inputs had been one.")
      .def("as_dict", &as_dict, "All numbers by name.")
      .def_static("from_dict", &from_dict, nb::arg("fields"),
                  "The report of which as_dict() gave these numbers; those that are missing are 0.")
      .def(
          "__eq__",
          [](const CastReport& self, nb::handle other) -> nb::object {
            if (!nb::isinstance<CastReport>(other)) return nb::borrow(Py_NotImplemented);
            return nb::bool_(equal(self, nb::cast<const CastReport&>(other)));
          },
          nb::arg("other").none())
      .def("__getstate__", &as_dict)
      .def("__setstate__", [](CastReport& self, const nb::dict& fields) { new (&self) CastReport(from_dict(fields)); });
  report.attr("__hash__") = nb::none();  // merge() changes a report
}

}  // namespace tensorcast::python
