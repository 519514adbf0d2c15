//! Common words of questions: articles, pronouns, auxiliaries.
//!
//! Their weight is low, but they are never left out: "the who" can still be found. The frequency of
//! a word on the site already lowers the weight of most of them, but the text of a small site may
//! have few of them.

use crate::site::language::primary;

/// Words of questions, by the primary subtag of the language.
const COMMON: [(&str, &str); 8] = [
    (
        "en",
        "a about am an and any are as at be been being by can could did do does doing for from \
         get had has have having he her him his how i if in into is it its just let like me my \
         need of on or our please s should so t than that the their them then there these they \
         this those to too us use using want was we were what when where which who whom why \
         will with would you your",
    ),
    (
        "fr",
        "a au aux avec c ce ces comment d dans de des du elle en est et il ils j je l la le les \
         leur m mes mon n ne nous on ou par pas pour pourquoi qu quand que quel quelle qui s sa \
         se ses son sont sur un une vos votre vous y",
    ),
    (
        "de",
        "als am an auf aus bei das dass dem den der des die ein eine einem einen einer eines er \
         es für fur hat ich im in ist kann man mein meine mit nach oder sich sie sind über um \
         und uns von vor wann warum was wenn wer werden wie wir wird wo zu zum zur",
    ),
    (
        "es",
        "a al como cómo con cual cuál cuando cuándo de del donde dónde el ella en es esta este \
         hay la las lo los mi mis para por porque que qué quien se si sin son su sus un una y yo",
    ),
    (
        "pt",
        "a ao as como com da das de do dos e em eu é foi há isso me meu minha na nas no nos o \
         onde os ou para pela pelo por porque qual quando que se sem ser seu são sua um uma",
    ),
    (
        "it",
        "a ai al alla che chi come con cosa da dal dei del della di dove e è gli ha ho i il in \
         io la le lo ma mi mio nel non o per perché quale quando se si sono su un una",
    ),
    (
        "nl",
        "aan als bij dat de deze die dit een en er het hij hoe ik in is kan met mijn naar niet \
         of om op te uit van voor waar waarom wat we wie wordt ze zijn",
    ),
    (
        "ru",
        "а в вы где для до и из или к как когда кто ли мне можно мой мы на не о он по почему с \
         то у чем что это я",
    ),
];

/// Returns whether a word in lower case is a common word of questions in a language.
pub(in crate::search) fn is_common(language: &str, word: &str) -> bool {
    let primary = match primary(language) {
        "zh" | "ja" | "ko" => "en",
        primary => primary,
    };
    let list = COMMON.iter().find(|(known, _)| *known == primary);
    list.is_some_and(|(_, words)| words.split(' ').any(|common| common == word))
}
