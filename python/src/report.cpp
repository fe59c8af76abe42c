// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

#include <nanobind/operators.h>

#include <cstring>
#include <type_traits>

#include "options/cast_report.hpp"
#include "report.hpp"

namespace tensorcast::python {
namespace {

namespace nb = nanobind;

using options::cast_report;
using options::for_each;

nb::dict as_dict(const CastReport& report) {
  nb::dict fields;
  for_each(cast_report, [&](const auto& number) { fields[number.name] = report.*number.member; });
  fields["snr_db"] = report.snr_db();
  return fields;
}

CastReport from_dict(const nb::dict& fields) {
  CastReport report;
  for_each(cast_report, [&](const auto& number) {
    auto& value = report.*number.member;
    if (fields.contains(number.name)) value = nb::cast<std::decay_t<decltype(value)>>(fields[number.name]);
  });
  return report;
}

// Compares bits, so that a NaN equals itself.
bool equal(const CastReport& a, const CastReport& b) {
  return options::all_of(cast_report, [&](const auto& number) {
    return std::memcmp(&(a.*number.member), &(b.*number.member), sizeof(a.*number.member)) == 0;
  });
}

}  // namespace

PyObject* new_report(const CastReport& report, PyObject* source, PyObject* result, PyObject* scale) {
  static PyObject* const attribute = PyUnicode_InternFromString("_compared");
  PyObject* const made = nb::cast(report).release().ptr();
  if (made == nullptr) return nullptr;
  PyObject* const compared =
      Py_BuildValue("(NNO)", PyWeakref_NewRef(source, nullptr), PyWeakref_NewRef(result, nullptr), scale);
  const bool set = compared != nullptr && PyObject_SetAttr(made, attribute, compared) == 0;
  Py_XDECREF(compared);
  if (set) return made;
  Py_DECREF(made);
  return nullptr;
}

void bind_report(nb::module_& module) {
  nb::class_<CastReport> report(module, "CastReport", nb::dynamic_attr(),
                                R"(What a conversion did to the numbers. Errors are measured against source * scale.

Examples:
    >>> half, report = tc.cast(np.float32([0.5, 1e9]), "float16", report=True)
    >>> report.count, report.overflowed
    (2, 1)
)");
  report.def(nb::init<>(), "The report of no elements.");
  for_each(cast_report, [&](const auto& number) {
    report.def_prop_ro(
        number.name, [value = number.member](const CastReport& self) { return self.*value; }, number.help);
  });
  report.def_prop_ro("snr_db", &CastReport::snr_db, "Signal to noise in decibels; infinity without noise.")
      .def("merge", &CastReport::merge, nb::arg("other"), R"(Adds another report, as if both inputs had been one.

Examples:
    >>> whole = tc.CastReport()
    >>> for part in np.float32([[0.5, 1e9], [1e9, 1e9]]):
    ...     whole.merge(tc.cast(part, "float16", report=True)[1])
    >>> whole.count, whole.overflowed
    (4, 3)
)")
      .def("as_dict", &as_dict, R"(All numbers by name.

Examples:
    >>> tc.cast(np.float32([0.5, 1e9]), "float16", report=True)[1].as_dict()["overflowed"]
    1
)")
      .def_static("from_dict", &from_dict, nb::arg("fields"),
                  R"(The report of which as_dict() gave these numbers; those that are missing are 0.

Examples:
    >>> tc.CastReport.from_dict({"count": 3, "overflowed": 1}).overflowed
    1
)")
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
