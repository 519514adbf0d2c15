//! Operators on known values: choice, comparison, joining of texts.
//!
//! Snippets use `{title && <h3>{title}</h3>}` or `{wide ? "2" : "1"}` with their own props.
//! Their values are known when the page is read. Arithmetic and calls are not supported.
//!
//! Sources: ECMA-262 §7.1.2 (truth), §7.2.14 (equality), §13.8 to §13.14 (operators).

use super::{DEPTH_MAX, Reader, Unsupported, Value};

// === impl Reader ===

impl Reader<'_> {
    /// Reads a whole expression.
    pub(super) fn value(&mut self, depth: usize) -> Result<Value, Unsupported> {
        if depth > DEPTH_MAX {
            return Err(Unsupported);
        }
        let condition = self.either(depth)?;
        self.space();
        // `?.` is not a conditional operator, and has no value here.
        if !self.rest().starts_with('?') || self.rest().starts_with("?.") {
            return Ok(condition);
        }
        self.at += 1;
        let yes = self.value(depth + 1)?;
        if !self.take(":") {
            return Err(Unsupported);
        }
        let no = self.value(depth + 1)?;
        Ok(if is_true(&condition) { yes } else { no })
    }

    fn either(&mut self, depth: usize) -> Result<Value, Unsupported> {
        let mut left = self.both(depth)?;
        loop {
            if self.take("||") {
                let right = self.both(depth)?;
                left = if is_true(&left) { left } else { right };
            } else if self.take("??") {
                let right = self.both(depth)?;
                left = if left == Value::Null { right } else { left };
            } else {
                return Ok(left);
            }
        }
    }

    fn both(&mut self, depth: usize) -> Result<Value, Unsupported> {
        let mut left = self.equal(depth)?;
        while self.take("&&") {
            let right = self.equal(depth)?;
            left = if is_true(&left) { right } else { left };
        }
        Ok(left)
    }

    fn equal(&mut self, depth: usize) -> Result<Value, Unsupported> {
        let left = self.joined(depth)?;
        let operators = [("===", true), ("!==", false), ("==", true), ("!=", false)];
        for (operator, wanted) in operators {
            if self.take(operator) {
                let right = self.joined(depth)?;
                return Ok(Value::Boolean((left == right) == wanted));
            }
        }
        Ok(left)
    }

    fn joined(&mut self, depth: usize) -> Result<Value, Unsupported> {
        let mut left = self.single(depth)?;
        while self.take("+") {
            let (Value::Text(one), Value::Text(other)) = (left, self.single(depth)?) else {
                return Err(Unsupported);
            };
            // A number is stored as its text, so the sum of two numbers is not supported.
            if one.parse::<f64>().is_ok() && other.parse::<f64>().is_ok() {
                return Err(Unsupported);
            }
            left = Value::Text(one + &other);
        }
        Ok(left)
    }

    fn single(&mut self, depth: usize) -> Result<Value, Unsupported> {
        self.space();
        if self.rest().starts_with('!') && !self.rest().starts_with("!=") {
            self.at += 1;
            if depth > DEPTH_MAX {
                return Err(Unsupported);
            }
            let value = self.single(depth + 1)?;
            return Ok(Value::Boolean(!is_true(&value)));
        }
        let mut value = self.primary(depth)?;
        loop {
            let key = if self.rest().starts_with('.') || self.rest().starts_with("?.") {
                self.at += self.rest().find('.').map_or(0, |at| at + 1);
                self.identifier().ok_or(Unsupported)?.to_owned()
            } else if self.rest().starts_with('[') {
                self.at += 1;
                let Value::Text(key) = self.value(depth + 1)? else {
                    return Err(Unsupported);
                };
                if !self.take("]") {
                    return Err(Unsupported);
                }
                key
            } else {
                return Ok(value);
            };
            value = member(value, &key)?;
        }
    }
}

fn member(value: Value, key: &str) -> Result<Value, Unsupported> {
    match value {
        Value::Object(entries) => {
            let found = entries.into_iter().find(|(name, _)| **name == *key);
            Ok(found.map_or(Value::Null, |(_, value)| value))
        }
        Value::List(mut values) => {
            let at: usize = key.parse().map_err(|_not_a_number| Unsupported)?;
            Ok(match at < values.len() {
                true => values.swap_remove(at),
                false => Value::Null,
            })
        }
        _ => Err(Unsupported),
    }
}

/// ECMA-262 §7.1.2.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null | Value::Boolean(false) => false,
        Value::Text(text) => !text.is_empty() && text != "0",
        _ => true,
    }
}
