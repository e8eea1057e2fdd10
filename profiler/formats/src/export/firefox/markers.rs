//! The kinds of markers that exported profiles have, with the fields of each.

use fxprof_processed_profile::{
    CategoryHandle, Marker, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, MarkerTypeHandle, Profile,
    RuntimeSchemaMarkerField, RuntimeSchemaMarkerSchema, StringHandle,
};

/// A kind of marker: the name of its type, its label in the marker table, and key and label of each field, a text.
pub(super) struct Kind(&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// A slice, a step or an instant.
pub(super) const SLICE: Kind = Kind("slice", "{marker.data.args}", &[("args", "Arguments")]);
/// A log message, of the type that the profiler shows among its logs; its name is the module.
pub(super) const LOG: Kind =
    Kind("Log", "{marker.data.message}", &[("level", "Level"), ("message", "Message"), ("source", "Source")]);
/// Where an arrow begins.
pub(super) const LEAVES: Kind = Kind("arrow leaves", "{marker.data.leaves}", &[("leaves", "Arrow")]);
/// Where an arrow ends.
pub(super) const ARRIVES: Kind = Kind("arrow arrives", "{marker.data.arrives}", &[("arrives", "Arrow")]);
/// A stall with its cause. The field is called `why`, since the profiler takes one called `cause` for a call stack.
pub(super) const STALL: Kind = Kind("stall", "{marker.data.text}", &[("why", "Cause"), ("text", "What held it up")]);

impl Kind {
    pub(super) fn name(&self) -> &'static str {
        self.0
    }

    pub(super) fn register(&self, profile: &mut Profile) -> MarkerTypeHandle {
        let Kind(name, table, fields) = *self;
        let field = |(key, label): &(&str, &str)| RuntimeSchemaMarkerField {
            key: (*key).to_owned(),
            label: (*label).to_owned(),
            format: MarkerFieldFormat::String,
            flags: MarkerFieldFlags::SEARCHABLE,
        };
        profile.register_marker_type(RuntimeSchemaMarkerSchema {
            type_name: name.to_owned(),
            description: None,
            locations: MarkerLocations::MARKER_CHART | MarkerLocations::MARKER_TABLE,
            chart_label: Some("{marker.name}".to_owned()),
            tooltip_label: None,
            table_label: Some(table.to_owned()),
            fields: fields.iter().map(field).collect(),
            graphs: Vec::new(),
        })
    }
}

/// A marker, whose fields are texts.
pub(super) struct TextMarker<const N: usize> {
    pub(super) kind: MarkerTypeHandle,
    pub(super) name: StringHandle,
    pub(super) category: CategoryHandle,
    pub(super) fields: [StringHandle; N],
}

impl<const N: usize> Marker for TextMarker<N> {
    fn marker_type(&self, _: &mut Profile) -> MarkerTypeHandle {
        self.kind
    }

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        self.fields[field as usize]
    }

    fn number_field_value(&self, _: u32) -> f64 {
        // No field is a number.
        f64::NAN
    }
}
