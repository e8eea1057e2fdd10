//! What is on the screen, as files: pixels ([`png`]), vectors ([`svg`]), tables in CSV.

pub mod png;
pub mod svg;

/// Where the context keeps whether this frame's shapes are taken.
fn shapes_id() -> egui::Id {
    egui::Id::NULL.with("shapes are taken")
}

/// Asks the panels to paint shapes, also where they show pictures of them; until it is taken back.
pub fn want_shapes(ctx: &egui::Context, wanted: bool) {
    ctx.data_mut(|data| data.insert_temp(shapes_id(), wanted));
}

/// Whether shapes are asked for.
pub fn wants_shapes(ctx: &egui::Context) -> bool {
    ctx.data(|data| data.get_temp(shapes_id())).unwrap_or(false)
}

/// A card that is to be saved by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// What it shows: a tag.
    pub name: String,
    /// Where it is.
    pub rect: egui::Rect,
    /// As shapes, not as pixels.
    pub as_vectors: bool,
}

/// Where the context keeps which card was asked for.
fn card_id() -> egui::Id {
    egui::Id::NULL.with("card to be saved")
}

/// Has the window save a card, in this frame or the next.
pub fn ask_for_card(ctx: &egui::Context, card: Card) {
    ctx.data_mut(|data| data.insert_temp(card_id(), Some(card)));
}

/// The card that was asked for, once.
pub fn take_card(ctx: &egui::Context) -> Option<Card> {
    ctx.data_mut(|data| data.get_temp_mut_or_default::<Option<Card>>(card_id()).take())
}

/// A field of a CSV file: in quotes where it has to be (RFC 4180).
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
