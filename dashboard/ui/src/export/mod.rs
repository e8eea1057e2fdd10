//! Exports of the screen's contents: pixels ([`png`]), vectors ([`svg`]), tables as CSV.

pub mod png;
pub mod svg;

/// The id under which the context stores whether shapes are requested.
fn shapes_id() -> egui::Id {
    egui::Id::NULL.with("shapes are taken")
}

/// Requests that panels paint shapes instead of pictures, until a call with false.
pub fn request_shapes(ctx: &egui::Context, is_requested: bool) {
    ctx.data_mut(|data| data.insert_temp(shapes_id(), is_requested));
}

/// Whether shapes are requested.
pub fn has_shapes_request(ctx: &egui::Context) -> bool {
    ctx.data(|data| data.get_temp(shapes_id())).unwrap_or(false)
}

/// A request to save a card.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The card's name: its tag.
    pub name: String,
    /// The card's rectangle.
    pub rect: egui::Rect,
    /// Whether to save shapes, rather than pixels.
    pub as_vectors: bool,
}

/// The id under which the context stores the requested card.
fn card_id() -> egui::Id {
    egui::Id::NULL.with("card to be saved")
}

/// Requests that the window saves a card, in this frame or the next.
pub fn request_card(ctx: &egui::Context, card: Card) {
    ctx.data_mut(|data| data.insert_temp(card_id(), Some(card)));
}

/// Takes the requested card.
pub fn take_card(ctx: &egui::Context) -> Option<Card> {
    ctx.data_mut(|data| data.get_temp_mut_or_default::<Option<Card>>(card_id()).take())
}

/// Quotes a field of CSV where RFC 4180 requires it.
pub fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// A table as CSV: headings, then rows.
pub fn csv<R: AsRef<[String]>>(headings: &[&str], rows: impl IntoIterator<Item = R>) -> String {
    let mut out = headings.join(",") + "\n";
    for row in rows {
        let fields: Vec<String> = row.as_ref().iter().map(|f| csv_field(f)).collect();
        out += &fields.join(",");
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_have_to_be() {
        let rows = [["a,b".to_owned(), "say \"x\"".to_owned()], ["plain".to_owned(), "two\nlines".to_owned()]];
        assert_eq!(csv(&["x", "y"], rows), "x,y\n\"a,b\",\"say \"\"x\"\"\"\nplain,\"two\nlines\"\n");
    }
}
