//! The owner of the keyboard: a text field, a dialog, a menu, or else the panels.

use egui::{Context, Id, Popup, Response, TextEdit, Ui, text::CCursorRange};

/// The id under which the context stores whether a text field had the focus.
fn typing_id() -> Id {
    Id::unique("a text field had the keyboard")
}

/// Records at the end of a frame whether a text field has the keyboard focus.
pub fn note_typing(ctx: &Context) {
    let is_typing = ctx.text_edit_focused();
    ctx.data_mut(|data| data.insert_temp(typing_id(), is_typing));
}

/// Focuses a field and selects its `text`, so that typing replaces it.
pub fn focus_all(field: &Response, text: &str) {
    field.request_focus();
    let mut state = TextEdit::load_state(&field.ctx, field.id).unwrap_or_default();
    state.cursor.set_char_range(Some(CCursorRange::select_all_str(text)));
    TextEdit::store_state(&field.ctx, field.id, state);
}

/// Whether keys belong to `ui`: no dialog or menu is open above it, and no text field has the focus, or had it until
/// this frame. The key that ended the focus (Escape or Enter) belongs to the field alone.
pub fn is_keyboard_free(ui: &Ui) -> bool {
    let ctx = ui.ctx();
    let was_typing = ctx.data(|data| data.get_temp(typing_id()).unwrap_or(false));
    let is_covered = || !ctx.memory(|memory| memory.is_above_modal_layer(ui.layer_id()));
    !was_typing && !ctx.text_edit_focused() && !is_covered() && !Popup::is_any_open(ctx)
}
