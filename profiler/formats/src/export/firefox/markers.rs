//! What kinds of markers a profile of ours has, with the fields of each.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, Profile, StaticSchemaMarker, StaticSchemaMarkerField,
    StringHandle,
};
use std::marker::PhantomData;

/// A kind of marker.
pub(super) trait Kind: 'static {
    const TYPE: &'static str;
    const CHART: Option<&'static str> = Some("{marker.name}");
    const TABLE: Option<&'static str>;
    const FIELDS: &'static [StaticSchemaMarkerField];
}

const fn text(key: &'static str, label: &'static str) -> StaticSchemaMarkerField {
    let (format, flags) = (MarkerFieldFormat::String, MarkerFieldFlags::SEARCHABLE);
    StaticSchemaMarkerField { key, label, format, flags }
}

/// Something that ran or happened: a slice, a step, an instant.
pub(super) struct Slice;

impl Kind for Slice {
    const TYPE: &'static str = "slice";
    const TABLE: Option<&'static str> = Some("{marker.data.args}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[text("args", "Arguments")];
}

/// A log message, of the type that the profiler shows among its logs; its name is the module.
pub(super) struct Log;

impl Kind for Log {
    const TYPE: &'static str = "Log";
    const TABLE: Option<&'static str> = Some("{marker.data.message}");
    const FIELDS: &'static [StaticSchemaMarkerField] =
        &[text("level", "Level"), text("message", "Message"), text("source", "Source")];
}

/// Where an arrow begins.
pub(super) struct Leaves;

impl Kind for Leaves {
    const TYPE: &'static str = "arrow leaves";
    const TABLE: Option<&'static str> = Some("{marker.data.leaves}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[text("leaves", "Arrow")];
}

/// Where an arrow ends.
pub(super) struct Arrives;

impl Kind for Arrives {
    const TYPE: &'static str = "arrow arrives";
    const TABLE: Option<&'static str> = Some("{marker.data.arrives}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[text("arrives", "Arrow")];
}

/// A part of a gap, with its cause; a field called `cause` would be a call stack.
pub(super) struct Stall;

impl Kind for Stall {
    const TYPE: &'static str = "stall";
    const TABLE: Option<&'static str> = Some("{marker.data.text}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[text("why", "Cause"), text("text", "What held it up")];
}

/// A marker of a kind, whose `N` fields are texts.
pub(super) struct Marker<K, const N: usize> {
    pub(super) name: StringHandle,
    pub(super) category: CategoryHandle,
    pub(super) fields: [StringHandle; N],
    pub(super) kind: PhantomData<K>,
}

impl<K: Kind, const N: usize> StaticSchemaMarker for Marker<K, N> {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = K::TYPE;
    const CHART_LABEL: Option<&'static str> = K::CHART;
    const TABLE_LABEL: Option<&'static str> = K::TABLE;
    const FIELDS: &'static [StaticSchemaMarkerField] = K::FIELDS;

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
