//! The parts of a pickle that would execute something.

use std::io::Read;

use super::{Machine, input::Interrupt};
use crate::error::Error;

impl<R: Read> Machine<R> {
    /// Why an instruction is refused: what it would call, where it says so.
    pub(super) fn refuse(&mut self, code: u8) -> Interrupt {
        match self.action(code) {
            Ok(Some(action)) => Error::Executable { action: printable(&action) }.into(),
            Ok(None) => self.wrong("an instruction that no dump has").into(),
            Err(interrupt) => interrupt,
        }
    }

    fn action(&mut self, code: u8) -> Result<Option<String>, Interrupt> {
        let action = match code {
            // GLOBAL and INST are followed by the module and the name.
            b'c' | b'i' => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                format!("call {module}.{name}")
            }
            // STACK_GLOBAL takes them from the stack.
            0x93 => {
                let name = self.stack.pop();
                let module = self.stack.pop();
                let text = |value: Option<_>| value.and_then(|value| self.tree.text(value)).unwrap_or("?");
                format!("call {}.{}", text(module), text(name))
            }
            // REDUCE, NEWOBJ, NEWOBJ_EX, OBJ and BUILD.
            b'R' | 0x81 | 0x92 | b'o' | b'b' => "create an object".to_owned(),
            // EXT1, EXT2 and EXT4.
            0x82..=0x84 => "call a registered extension".to_owned(),
            // PERSID and BINPERSID.
            b'P' | b'Q' => "load an object from elsewhere".to_owned(),
            // NEXT_BUFFER and READONLY_BUFFER.
            0x97 | 0x98 => "use buffers from elsewhere".to_owned(),
            _ => return Ok(None),
        };
        Ok(Some(action))
    }
}

/// One short line, whatever the file calls its functions.
fn printable(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { '?' } else { c }).collect()
}
