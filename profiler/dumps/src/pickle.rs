//! Pickles of protocol 2 to 5, as data: nothing is called, and a pickle that names a function or a class is refused.
//!
//! The file is read as a stream, and no container is walked: neither depth nor references cost a stack.

mod input;
mod memo;
mod refused;

use std::io::Read;

use self::{
    input::{Input, Interrupt},
    memo::Memo,
};
use crate::{
    document::Document,
    error::Error,
    tree::Tree,
    value::Value,
    warnings::{Warnings, warn},
};

/// Containers that are open at once.
const MAX_DEPTH: usize = 1000;
/// A file whose containers take more bytes than this many times its own is refused, but for small ones.
const MAX_GROWTH: u64 = 24;
const SMALL: u64 = 64 << 20;

/// Reads a pickle. What a truncated file contains is kept, with a warning.
pub(crate) fn read(reader: impl Read) -> Result<Document, Error> {
    let mut machine = Machine {
        input: Input::new(reader),
        tree: Tree::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Memo::default(),
        piece: Vec::new(),
    };
    let mut warnings = Warnings::new();
    let root = match machine.run() {
        Ok(root) => root,
        Err(Interrupt::Error(error)) => return Err(error),
        Err(Interrupt::End) => {
            warn(&mut warnings, "end of the file before its data end");
            machine.rescue().ok_or_else(|| machine.wrong("the file ends before it has any data"))?
        }
    };
    Ok(Document { n_bytes: machine.input.offset(), tree: machine.tree, root, warnings })
}

struct Machine<R> {
    input: Input<R>,
    tree: Tree,
    stack: Vec<Value>,
    /// How high the stack was at each mark.
    marks: Vec<usize>,
    memo: Memo,
    /// The bytes of the latest text.
    piece: Vec<u8>,
}

impl<R: Read> Machine<R> {
    fn run(&mut self) -> Result<Value, Interrupt> {
        if self.input.byte()? != 0x80 {
            return Err(self.wrong("no pickle of protocol 2 to 5").into());
        }
        self.protocol()?;
        loop {
            let code = self.input.byte()?;
            if code == b'.' {
                let top = self.stack.last().copied();
                return top.ok_or_else(|| self.wrong("a pickle without a value").into());
            }
            self.step(code)?;
        }
    }

    #[inline]
    fn step(&mut self, code: u8) -> Result<(), Interrupt> {
        match code {
            b'(' => self.open()?,
            b'h' => {
                let number = self.input.byte()?;
                self.recall(number.into())?;
            }
            b'j' => {
                let number = u32::from_le_bytes(self.input.array()?);
                self.recall(number)?;
            }
            0x94 => {
                let top = self.top()?;
                self.memo.push(top);
            }
            b'q' => {
                let number = self.input.byte()?;
                let top = self.top()?;
                self.memo.put(number.into(), top);
            }
            b'r' => {
                let number = u32::from_le_bytes(self.input.array()?);
                let top = self.top()?;
                self.memo.put(number, top);
            }
            b'}' => {
                self.check_growth()?;
                let dict = self.tree.new_dict();
                self.stack.push(dict);
            }
            b']' | 0x8f => self.push_list(Vec::new())?,
            b'u' => {
                let start = self.close()?;
                self.insert_above(start)?;
            }
            b'e' | 0x90 => {
                let start = self.close()?;
                self.extend_above(start)?;
            }
            b'X' => {
                let length = u32::from_le_bytes(self.input.array()?);
                self.text(length.into())?;
            }
            0x8c => {
                let length = self.input.byte()?;
                self.text(length.into())?;
            }
            _ => self.step_number(code)?,
        }
        Ok(())
    }

    fn step_number(&mut self, code: u8) -> Result<(), Interrupt> {
        let value: i128 = match code {
            b'K' => self.input.byte()?.into(),
            b'M' => u16::from_le_bytes(self.input.array()?).into(),
            b'J' => i32::from_le_bytes(self.input.array()?).into(),
            0x8a => {
                let length = self.input.byte()?;
                return self.long(length.into());
            }
            0x8b => {
                let length = i32::from_le_bytes(self.input.array()?);
                let length = u64::try_from(length).map_err(|_| self.wrong("a number of negative length"))?;
                return self.long(length);
            }
            b'G' => {
                let float = self.tree.new_float(f64::from_be_bytes(self.input.array()?));
                self.stack.push(float);
                return Ok(());
            }
            _ => return self.step_rare(code),
        };
        let value = self.tree.new_int(value);
        self.stack.push(value);
        Ok(())
    }

    fn step_rare(&mut self, code: u8) -> Result<(), Interrupt> {
        match code {
            b'N' => self.stack.push(Value::NONE),
            0x88 => self.stack.push(Value::bool(true)),
            0x89 => self.stack.push(Value::bool(false)),
            b')' => self.tuple(0)?,
            0x85 => self.tuple(1)?,
            0x86 => self.tuple(2)?,
            0x87 => self.tuple(3)?,
            b't' => {
                let start = self.close()?;
                self.tuple(self.stack.len() - start)?;
            }
            b'l' | 0x91 => {
                let start = self.close()?;
                let items = self.stack.split_off(start);
                self.push_list(items)?;
            }
            b'd' => {
                let start = self.close()?;
                let dict = self.tree.new_dict();
                self.stack.insert(start, dict);
                self.insert_above(start + 1)?;
            }
            b'a' => self.extend_above(self.stack.len().saturating_sub(1))?,
            b's' => self.insert_above(self.stack.len().saturating_sub(2))?,
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                let start = self.close()?;
                self.stack.truncate(start);
            }
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            0x80 => self.protocol()?,
            // The frames of protocol 4 say how much to read ahead.
            0x95 => _ = self.input.array::<8>()?,
            _ => self.step_bytes(code)?,
        }
        Ok(())
    }

    fn step_bytes(&mut self, code: u8) -> Result<(), Interrupt> {
        match code {
            // Long texts, and those of Python 2.
            0x8d => {
                let length = u64::from_le_bytes(self.input.array()?);
                self.text(length)
            }
            b'U' => {
                let length = self.input.byte()?;
                self.text(length.into())
            }
            b'T' => {
                let length = u32::from_le_bytes(self.input.array()?);
                self.text(length.into())
            }
            // No dump has bytes: they are passed over.
            b'C' => {
                let length = self.input.byte()?;
                self.bytes(length.into())
            }
            b'B' => {
                let length = u32::from_le_bytes(self.input.array()?);
                self.bytes(length.into())
            }
            0x8e | 0x96 => {
                let length = u64::from_le_bytes(self.input.array()?);
                self.bytes(length)
            }
            _ => Err(self.refuse(code)),
        }
    }

    fn protocol(&mut self) -> Result<(), Interrupt> {
        match self.input.byte()? {
            2..=5 => Ok(()),
            _ => Err(self.wrong("no pickle of protocol 2 to 5").into()),
        }
    }

    fn wrong(&self, what: &'static str) -> Error {
        Error::Pickle { offset: self.input.offset(), what }
    }

    #[inline]
    fn open(&mut self) -> Result<(), Interrupt> {
        if self.marks.len() == MAX_DEPTH {
            return Err(self.wrong("data nested more than 1000 deep").into());
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Ends what the last mark began: where its values begin on the stack.
    #[inline]
    fn close(&mut self) -> Result<usize, Interrupt> {
        match self.marks.pop() {
            Some(start) => Ok(start),
            None => Err(self.wrong("the end of a container that does not begin").into()),
        }
    }

    /// How much of the stack belongs to the containers that are open.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    #[inline]
    fn top(&self) -> Result<Value, Interrupt> {
        match self.stack.last() {
            Some(value) if self.stack.len() > self.floor() => Ok(*value),
            _ => Err(self.wrong("a value is missing").into()),
        }
    }

    fn pop(&mut self) -> Result<Value, Interrupt> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    #[inline]
    fn recall(&mut self, number: u32) -> Result<(), Interrupt> {
        match self.memo.get(number) {
            Some(value) => self.stack.push(value),
            None => return Err(self.wrong("a reference to what was not stored").into()),
        }
        Ok(())
    }

    fn check_growth(&self) -> Result<(), Interrupt> {
        let n_bytes = self.tree.n_bytes() + 8 * self.memo.len() as u64;
        if n_bytes > SMALL + MAX_GROWTH * self.input.offset() {
            return Err(self.wrong("data that take far more memory than their file").into());
        }
        Ok(())
    }

    fn push_list(&mut self, items: Vec<Value>) -> Result<(), Interrupt> {
        self.check_growth()?;
        let list = self.tree.new_list(items);
        self.stack.push(list);
        Ok(())
    }

    fn tuple(&mut self, n: usize) -> Result<(), Interrupt> {
        let start = self.stack.len().checked_sub(n).filter(|start| *start >= self.floor());
        let start = start.ok_or_else(|| self.wrong("a value is missing"))?;
        self.check_growth()?;
        let tuple = self.tree.new_tuple(&self.stack[start..]);
        self.stack.truncate(start);
        self.stack.push(tuple);
        Ok(())
    }

    /// Adds what is on the stack from `start` on to the list below.
    fn extend_above(&mut self, start: usize) -> Result<(), Interrupt> {
        let below = start.checked_sub(1).filter(|below| *below >= self.floor()).and_then(|below| self.stack.get(below));
        let list = *below.ok_or_else(|| self.wrong("items without a list"))?;
        if !self.tree.extend(list, self.stack.drain(start..)) {
            return Err(self.wrong("items of what is no list").into());
        }
        Ok(())
    }

    /// Adds what is on the stack from `start` on to the dictionary below.
    fn insert_above(&mut self, start: usize) -> Result<(), Interrupt> {
        let below = start.checked_sub(1).filter(|below| *below >= self.floor()).and_then(|below| self.stack.get(below));
        let dict = *below.ok_or_else(|| self.wrong("items without a dictionary"))?;
        if !self.tree.insert(dict, &self.stack[start..]) {
            return Err(self.wrong("pairs of what is no dictionary").into());
        }
        self.stack.truncate(start);
        Ok(())
    }

    fn text(&mut self, length: u64) -> Result<(), Interrupt> {
        self.input.piece(length, &mut self.piece)?;
        let text = String::from_utf8_lossy(&self.piece);
        let text = self.tree.new_text(&text);
        self.stack.push(text);
        Ok(())
    }

    fn bytes(&mut self, length: u64) -> Result<(), Interrupt> {
        self.input.skip(length)?;
        self.stack.push(Value::OPAQUE);
        Ok(())
    }

    /// A whole number of `length` bytes in two's complement, the lowest byte first.
    fn long(&mut self, length: u64) -> Result<(), Interrupt> {
        let value = if length <= 16 {
            self.input.piece(length, &mut self.piece)?;
            let is_negative = self.piece.last().is_some_and(|byte| *byte >= 0x80);
            let mut bytes = if is_negative { [0xff; 16] } else { [0; 16] };
            bytes[..self.piece.len()].copy_from_slice(&self.piece);
            self.tree.new_int(i128::from_le_bytes(bytes))
        } else {
            self.input.skip(length)?;
            Value::OPAQUE
        };
        self.stack.push(value);
        Ok(())
    }

    /// Ends all that is open in a truncated file: what is complete goes into its container, from the innermost outwards.
    fn rescue(&mut self) -> Option<Value> {
        while let Some(start) = self.marks.pop() {
            let Some(below) = start.checked_sub(1) else { break };
            // The last pair may lack its value.
            let end = start + (self.stack.len() - start) / 2 * 2;
            let container = self.stack[below];
            if !self.tree.insert(container, &self.stack[start..end]) {
                // Neither is what is no list: a tuple is lost.
                self.tree.extend(container, self.stack[start..].iter().copied());
            }
            self.stack.truncate(start);
        }
        self.stack.first().copied()
    }
}
