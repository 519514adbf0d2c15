//! The words that pages of endpoints say, in the languages that this program speaks.
//!
//! What the specification says stays as its author wrote it: names, types, places (`path`,
//! `query`), descriptions. Where a word stands around something of the specification, the
//! place of that is `{}`, because languages order them differently.

use crate::render::spoken::Spoken;

/// The keywords that bound values (JSON Schema 2020-12, validation, §6).
pub(super) const BOUNDS: [&str; 9] = [
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
];

/// What pages of endpoints say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub deprecated: &'static str,
    /// With the name of what is sent in place of `{}`.
    pub webhook: &'static str,
    pub servers: &'static str,
    pub variable: &'static str,
    pub authorization: &'static str,
    pub any_is_enough: &'static str,
    /// Between the schemes of a set, all of which are asked for.
    pub and: &'static str,
    /// In the place of schemes where a set has none.
    pub nothing: &'static str,
    pub api_key: &'static str,
    pub certificate: &'static str,
    pub path_parameters: &'static str,
    pub query_parameters: &'static str,
    pub headers: &'static str,
    pub cookies: &'static str,
    pub body: &'static str,
    pub request: &'static str,
    pub responses: &'static str,
    pub example: &'static str,
    pub fields: &'static str,
    /// In the place of the name of a field, when any will do.
    pub any_key: &'static str,
    /// With the link to a schema in place of `{}`.
    pub as_above: &'static str,
    pub one_of_these: &'static str,
    pub any_of_these: &'static str,
    /// The name of an alternative that has none, with its number in place of `{}`.
    pub option: &'static str,
    /// Between the types of a value.
    pub or: &'static str,
    /// Before the only value; before several.
    pub always: &'static str,
    pub one_of: &'static str,
    pub read_only: &'static str,
    pub write_only: &'static str,
    pub nullable: &'static str,
    /// How each of [`BOUNDS`] is said, with the value in place of `{}`.
    pub bounds: [&'static str; BOUNDS.len()],
}

const ENGLISH: Words = Words {
    deprecated: "This endpoint is deprecated and may go away.",
    webhook: "The service sends {} to you, as a POST request.",
    servers: "Servers",
    variable: "variable",
    authorization: "Authorization",
    any_is_enough: "Any one of these is enough:",
    and: " and ",
    nothing: "Nothing",
    api_key: "API key",
    certificate: "client certificate",
    path_parameters: "Path parameters",
    query_parameters: "Query parameters",
    headers: "Headers",
    cookies: "Cookies",
    body: "Body",
    request: "Request",
    responses: "Responses",
    example: "Example",
    fields: "Fields",
    any_key: "{any key}",
    as_above: "{}, as above.",
    one_of_these: "One of these:",
    any_of_these: "Any of these:",
    option: "Option {}",
    or: " or ",
    always: "Always ",
    one_of: "One of ",
    read_only: "read-only",
    write_only: "write-only",
    nullable: "nullable",
    bounds: [
        "at least {}",
        "more than {}",
        "at most {}",
        "less than {}",
        "length at least {}",
        "length at most {}",
        "number of items at least {}",
        "number of items at most {}",
        "matches {}",
    ],
};

const ARABIC: Words = Words {
    deprecated: "نقطة الوصول هذه مهملة وقد تُزال.",
    webhook: "ترسل إليك الخدمة {} في طلب POST.",
    servers: "الخوادم",
    variable: "متغيّر",
    authorization: "التفويض",
    any_is_enough: "يكفي أيّ واحد مما يلي:",
    and: " و",
    nothing: "لا شيء",
    api_key: "مفتاح API",
    certificate: "شهادة العميل",
    path_parameters: "معاملات المسار",
    query_parameters: "معاملات الاستعلام",
    headers: "الترويسات",
    cookies: "ملفات تعريف الارتباط",
    body: "المتن",
    request: "الطلب",
    responses: "الاستجابات",
    example: "مثال",
    fields: "الحقول",
    any_key: "{أيّ مفتاح}",
    as_above: "{}، كما ورد أعلاه.",
    one_of_these: "واحد مما يلي:",
    any_of_these: "واحد أو أكثر مما يلي:",
    option: "الخيار {}",
    or: " أو ",
    always: "دائمًا ",
    one_of: "أحد القيم: ",
    read_only: "للقراءة فقط",
    write_only: "للكتابة فقط",
    nullable: "يقبل null",
    bounds: [
        "{} على الأقل",
        "أكبر من {}",
        "{} على الأكثر",
        "أصغر من {}",
        "الطول {} على الأقل",
        "الطول {} على الأكثر",
        "عدد العناصر {} على الأقل",
        "عدد العناصر {} على الأكثر",
        "يطابق {}",
    ],
};

const HEBREW: Words = Words {
    deprecated: "נקודת הקצה הזאת מיושנת וייתכן שתוסר.",
    webhook: "השירות שולח אליך את {} בבקשת POST.",
    servers: "שרתים",
    variable: "משתנה",
    authorization: "הרשאה",
    any_is_enough: "די באחת מאלה:",
    and: " וגם ",
    nothing: "ללא",
    api_key: "מפתח API",
    certificate: "תעודת לקוח",
    path_parameters: "פרמטרים בנתיב",
    query_parameters: "פרמטרים בשאילתה",
    headers: "כותרות",
    cookies: "עוגיות",
    body: "גוף הבקשה",
    request: "בקשה",
    responses: "תשובות",
    example: "דוגמה",
    fields: "שדות",
    any_key: "{כל מפתח}",
    as_above: "{}, כמו למעלה.",
    one_of_these: "אחת מאלה:",
    any_of_these: "אחת או יותר מאלה:",
    option: "אפשרות {}",
    or: " או ",
    always: "תמיד ",
    one_of: "אחד מהערכים ",
    read_only: "לקריאה בלבד",
    write_only: "לכתיבה בלבד",
    nullable: "יכול להיות null",
    bounds: [
        "לפחות {}",
        "יותר מ־{}",
        "לכל היותר {}",
        "פחות מ־{}",
        "אורך לפחות {}",
        "אורך לכל היותר {}",
        "מספר הפריטים לפחות {}",
        "מספר הפריטים לכל היותר {}",
        "תואם ל־{}",
    ],
};

const FRENCH: Words = Words {
    deprecated: "Ce point d’accès est obsolète et peut disparaître.",
    webhook: "Le service vous envoie {} dans une requête POST.",
    servers: "Serveurs",
    variable: "variable",
    authorization: "Autorisation",
    any_is_enough: "Un seul de ces moyens suffit :",
    and: " et ",
    nothing: "Rien",
    api_key: "clé d’API",
    certificate: "certificat client",
    path_parameters: "Paramètres de chemin",
    query_parameters: "Paramètres de requête",
    headers: "En-têtes",
    cookies: "Cookies",
    body: "Corps",
    request: "Requête",
    responses: "Réponses",
    example: "Exemple",
    fields: "Champs",
    any_key: "{toute clé}",
    as_above: "{}, comme ci-dessus.",
    one_of_these: "L’un de ces schémas :",
    any_of_these: "Un ou plusieurs de ces schémas :",
    option: "Option {}",
    or: " ou ",
    always: "Toujours ",
    one_of: "L’une des valeurs ",
    read_only: "lecture seule",
    write_only: "écriture seule",
    nullable: "peut être null",
    bounds: [
        "au moins {}",
        "plus de {}",
        "au plus {}",
        "moins de {}",
        "longueur d’au moins {}",
        "longueur d’au plus {}",
        "nombre d’éléments d’au moins {}",
        "nombre d’éléments d’au plus {}",
        "correspond à {}",
    ],
};

const GERMAN: Words = Words {
    deprecated: "Dieser Endpunkt ist veraltet und kann wegfallen.",
    webhook: "Der Dienst sendet Ihnen {} als POST-Anfrage.",
    servers: "Server",
    variable: "Variable",
    authorization: "Autorisierung",
    any_is_enough: "Eines davon genügt:",
    and: " und ",
    nothing: "Nichts",
    api_key: "API-Schlüssel",
    certificate: "Clientzertifikat",
    path_parameters: "Pfadparameter",
    query_parameters: "Abfrageparameter",
    headers: "Header",
    cookies: "Cookies",
    body: "Body",
    request: "Anfrage",
    responses: "Antworten",
    example: "Beispiel",
    fields: "Felder",
    any_key: "{beliebiger Schlüssel}",
    as_above: "{}, wie oben.",
    one_of_these: "Eines von diesen:",
    any_of_these: "Eines oder mehrere von diesen:",
    option: "Möglichkeit {}",
    or: " oder ",
    always: "Immer ",
    one_of: "Einer der Werte ",
    read_only: "nur lesbar",
    write_only: "nur schreibbar",
    nullable: "darf null sein",
    bounds: [
        "mindestens {}",
        "mehr als {}",
        "höchstens {}",
        "weniger als {}",
        "Länge mindestens {}",
        "Länge höchstens {}",
        "Anzahl der Elemente mindestens {}",
        "Anzahl der Elemente höchstens {}",
        "entspricht {}",
    ],
};

const SPANISH: Words = Words {
    deprecated: "Este punto de acceso está obsoleto y puede desaparecer.",
    webhook: "El servicio le envía {} en una solicitud POST.",
    servers: "Servidores",
    variable: "variable",
    authorization: "Autorización",
    any_is_enough: "Basta con uno de estos medios:",
    and: " y ",
    nothing: "Nada",
    api_key: "clave de API",
    certificate: "certificado de cliente",
    path_parameters: "Parámetros de ruta",
    query_parameters: "Parámetros de consulta",
    headers: "Encabezados",
    cookies: "Cookies",
    body: "Cuerpo",
    request: "Solicitud",
    responses: "Respuestas",
    example: "Ejemplo",
    fields: "Campos",
    any_key: "{cualquier clave}",
    as_above: "{}, como arriba.",
    one_of_these: "Uno de estos:",
    any_of_these: "Uno o varios de estos:",
    option: "Opción {}",
    or: " o ",
    always: "Siempre ",
    one_of: "Uno de los valores ",
    read_only: "solo lectura",
    write_only: "solo escritura",
    nullable: "puede ser null",
    bounds: [
        "al menos {}",
        "más de {}",
        "como máximo {}",
        "menos de {}",
        "longitud mínima {}",
        "longitud máxima {}",
        "número mínimo de elementos {}",
        "número máximo de elementos {}",
        "coincide con {}",
    ],
};

// === impl Words ===

impl Words {
    /// Returns the words of a language by its BCP 47 tag.
    pub(super) fn of(tag: &str) -> &'static Self {
        match Spoken::of(tag) {
            Spoken::Arabic => &ARABIC,
            Spoken::German => &GERMAN,
            Spoken::English => &ENGLISH,
            Spoken::Spanish => &SPANISH,
            Spoken::French => &FRENCH,
            Spoken::Hebrew => &HEBREW,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_place_in_english_has_it_in_every_language() {
        let has_place = |words: &str| words.matches("{}").count() == 1;
        for tag in ["en", "ar", "he", "fr", "de", "es"] {
            let words = Words::of(tag);
            for words in [words.webhook, words.as_above, words.option] {
                assert!(has_place(words), "{tag}: {words}");
            }
            for bound in words.bounds {
                assert!(has_place(bound), "{tag}: {bound}");
            }
        }
    }
}
