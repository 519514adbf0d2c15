//! The words that articles say of themselves, in the languages that this program speaks.
//!
//! What authors wrote is never translated; but a callout without a title, a box that is
//! ticked or a link to a heading has a name that nobody wrote. It is one of the page's
//! language, and English where that language is not here. The words of the shell around
//! articles stand in `layout`.

use super::spoken::Spoken;

/// What articles say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    pub(super) note: &'static str,
    pub(super) warning: &'static str,
    pub(super) info: &'static str,
    pub(super) tip: &'static str,
    pub(super) check: &'static str,
    pub(super) danger: &'static str,
    /// A box that is ticked, and one that is not.
    pub(super) done: &'static str,
    pub(super) to_do: &'static str,
    /// Before the words of a heading.
    pub(super) link_to: &'static str,
    pub(super) table: &'static str,
    pub(super) source: &'static str,
    pub(super) embedded: &'static str,
    pub(super) required: &'static str,
    pub(super) deprecated: &'static str,
    pub(super) default: &'static str,
    pub(super) example: &'static str,
}

const ENGLISH: Words = Words {
    note: "Note",
    warning: "Warning",
    info: "Info",
    tip: "Tip",
    check: "Check",
    danger: "Danger",
    done: "Done",
    to_do: "To do",
    link_to: "Link to",
    table: "Table",
    source: "Source of the diagram",
    embedded: "Embedded page",
    required: "required",
    deprecated: "deprecated",
    default: "default",
    example: "example",
};

const ARABIC: Words = Words {
    note: "ملاحظة",
    warning: "تحذير",
    info: "معلومة",
    tip: "نصيحة",
    check: "تم التحقق",
    danger: "خطر",
    done: "منجز",
    to_do: "غير منجز",
    link_to: "رابط إلى",
    table: "جدول",
    source: "مصدر الرسم",
    embedded: "صفحة مضمّنة",
    required: "مطلوب",
    deprecated: "مهمل",
    default: "الافتراضي",
    example: "مثال",
};

const HEBREW: Words = Words {
    note: "הערה",
    warning: "אזהרה",
    info: "מידע",
    tip: "טיפ",
    check: "נבדק",
    danger: "סכנה",
    done: "בוצע",
    to_do: "לביצוע",
    link_to: "קישור אל",
    table: "טבלה",
    source: "מקור התרשים",
    embedded: "דף מוטמע",
    required: "חובה",
    deprecated: "מיושן",
    default: "ברירת מחדל",
    example: "דוגמה",
};

const FRENCH: Words = Words {
    note: "Remarque",
    warning: "Attention",
    info: "Info",
    tip: "Astuce",
    check: "Vérifié",
    danger: "Danger",
    done: "Fait",
    to_do: "À faire",
    link_to: "Lien vers",
    table: "Tableau",
    source: "Source du diagramme",
    embedded: "Page intégrée",
    required: "obligatoire",
    deprecated: "obsolète",
    default: "par défaut",
    example: "exemple",
};

const GERMAN: Words = Words {
    note: "Hinweis",
    warning: "Achtung",
    info: "Info",
    tip: "Tipp",
    check: "Geprüft",
    danger: "Gefahr",
    done: "Erledigt",
    to_do: "Offen",
    link_to: "Link zu",
    table: "Tabelle",
    source: "Quelltext des Diagramms",
    embedded: "Eingebettete Seite",
    required: "erforderlich",
    deprecated: "veraltet",
    default: "Standard",
    example: "Beispiel",
};

const SPANISH: Words = Words {
    note: "Nota",
    warning: "Advertencia",
    info: "Información",
    tip: "Consejo",
    check: "Comprobado",
    danger: "Peligro",
    done: "Hecho",
    to_do: "Pendiente",
    link_to: "Enlace a",
    table: "Tabla",
    source: "Código del diagrama",
    embedded: "Página incrustada",
    required: "obligatorio",
    deprecated: "obsoleto",
    default: "por defecto",
    example: "ejemplo",
};

// === impl Words ===

impl Words {
    /// Returns the words of a language by its BCP 47 tag.
    #[must_use]
    pub fn of(tag: &str) -> &'static Self {
        match Spoken::of(tag) {
            Spoken::Arabic => &ARABIC,
            Spoken::German => &GERMAN,
            Spoken::English => &ENGLISH,
            Spoken::Spanish => &SPANISH,
            Spoken::French => &FRENCH,
            Spoken::Hebrew => &HEBREW,
        }
    }

    /// Returns the word of a callout by the class that shows it.
    pub(super) fn callout(&self, class: &str) -> &'static str {
        match class {
            "warning" => self.warning,
            "info" => self.info,
            "tip" => self.tip,
            "check" => self.check,
            "danger" => self.danger,
            _ => self.note,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_speaks_its_language_and_a_language_that_is_not_here_english() {
        assert_eq!(Words::of("fr-CA"), &FRENCH);
        assert_eq!(Words::of("uz"), &ENGLISH);
        assert_eq!(Words::of(""), &ENGLISH);
    }
}
