"""Sections on valid labels, slices and superclasses, for the inputs that were given."""

from __future__ import annotations

from classgap.audit.audit import Audit
from classgap.report.sections import Section
from classgap.report.slice_section import slice_section
from classgap.report.superclass_section import superclass_section
from classgap.report.valid_section import valid_section


def label_sections(audit: Audit) -> list[Section]:
    """Return the sections whose inputs were given."""
    found = (make(audit) for make in (valid_section, slice_section, superclass_section))
    return [section for section in found if section is not None]
