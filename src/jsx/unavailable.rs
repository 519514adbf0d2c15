//! JavaScript that pages cannot use, because no limit would count what it does.
//!
//! | code | reason |
//! |---|---|
//! | `_wp$` | It is the name of the functions that count. |
//! | `1n` | The engine takes one step for a sum or product of numbers of any length. |
//! | `function*` | A call returns an object with the prototype that the page has set. No code that is marked runs before. |
//! | `this` or `super` in the parameters of a function that `new` can call | The page would reach the object before its prototypes are counted; see [`super::charge`]. |

use oxc_ast::AstKind;
use oxc_semantic::{NodeId, Semantic};
use oxc_span::{GetSpan as _, Span};

use super::script::Broken;
use super::{RUNTIME, charge};

/// The start of the message for a page that uses the name [`RUNTIME`].
const RESERVED: &str = "the name `_wp$` is reserved and";

/// Returns the first place that pages cannot use.
pub(super) fn first(semantic: &Semantic<'_>) -> Option<Broken> {
    let mut nodes = semantic.nodes().iter();
    nodes.find_map(|node| {
        let what = match node.kind() {
            AstKind::IdentifierReference(name) if name.name == RUNTIME => RESERVED,
            AstKind::BindingIdentifier(name) if name.name == RUNTIME => RESERVED,
            AstKind::BigIntLiteral(_) => "integers such as `1n` are",
            AstKind::Function(function) if function.generator => "generators (`function*`) are",
            AstKind::ThisExpression(_) | AstKind::Super(_)
                if is_in_parameters(semantic, node.id()) =>
            {
                "`this` in the parameters of a function is"
            }
            _ => return None,
        };
        Some(broken(what, node.kind().span()))
    })
}

fn broken(what: &str, span: Span) -> Broken {
    Broken {
        message: format!("{what} not available in pages"),
        at: span.start as usize,
    }
}

/// Returns whether a node runs with the parameters of a function that `new` can call, and not with
/// the body of a function.
fn is_in_parameters(semantic: &Semantic<'_>, id: NodeId) -> bool {
    let mut is_parameter = false;
    for node in semantic.nodes().ancestors(id) {
        match node.kind() {
            AstKind::FormalParameters(_) => is_parameter = true,
            // It has the `this` of the function around it.
            AstKind::ArrowFunctionExpression(_) => is_parameter = false,
            AstKind::Function(function) => {
                return is_parameter && charge::can_construct(semantic, node.id(), function);
            }
            AstKind::PropertyDefinition(_) | AstKind::StaticBlock(_) => return false,
            _ => {}
        }
    }
    false
}
