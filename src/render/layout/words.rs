//! The words of the shell, in the languages that this program speaks.
//!
//! A page's shell speaks the language of the page; where that language is not here, it
//! speaks English. What authors wrote is never translated.

use crate::render::spoken::Spoken;

/// What the shell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub skip: &'static str,
    pub menu: &'static str,
    pub close: &'static str,
    pub search: &'static str,
    pub theme: &'static str,
    pub announcement: &'static str,
    pub dismiss: &'static str,
    pub product: &'static str,
    pub version: &'static str,
    pub language: &'static str,
    pub pages: &'static str,
    pub sections: &'static str,
    pub site: &'static str,
    pub breadcrumb: &'static str,
    pub contents: &'static str,
    pub copy_page: &'static str,
    pub markdown: &'static str,
    pub edit: &'static str,
    pub neighbours: &'static str,
    pub previous: &'static str,
    pub next: &'static str,
    pub default: &'static str,
    pub deprecated: &'static str,
    /// Before the name of a group.
    pub pages_of: &'static str,
    /// Before the name of the version that is read.
    pub reading: &'static str,
    /// Before the name of the default version.
    pub newest: &'static str,
    pub missing: &'static str,
    pub missing_text: &'static str,
    pub home: &'static str,
    /// What the script says, in its order: copy, copied, search, nothing found, near.
    pub script: &'static str,
}

const ENGLISH: Words = Words {
    skip: "Skip to content",
    menu: "Menu",
    close: "Close",
    search: "Search",
    theme: "Switch between light and dark",
    announcement: "Announcement",
    dismiss: "Dismiss",
    product: "Section",
    version: "Version",
    language: "Language",
    pages: "Pages",
    sections: "Sections",
    site: "Site",
    breadcrumb: "Breadcrumb",
    contents: "On this page",
    copy_page: "Copy page",
    markdown: "View as Markdown",
    edit: "Edit this page",
    neighbours: "Previous and next",
    previous: "Previous",
    next: "Next",
    default: "default",
    deprecated: "deprecated",
    pages_of: "Pages of",
    reading: "You are reading",
    newest: "Go to",
    missing: "Page not found",
    missing_text: "There is no page at this address. It may have moved.",
    home: "Go to the first page",
    script: "Copy|Copied|Search|Nothing found|Did you mean",
};

const ARABIC: Words = Words {
    skip: "تخطَّ إلى المحتوى",
    menu: "القائمة",
    close: "إغلاق",
    search: "بحث",
    theme: "التبديل بين الفاتح والداكن",
    announcement: "إعلان",
    dismiss: "إخفاء",
    product: "القسم",
    version: "الإصدار",
    language: "اللغة",
    pages: "الصفحات",
    sections: "الأقسام",
    site: "الموقع",
    breadcrumb: "المسار",
    contents: "في هذه الصفحة",
    copy_page: "نسخ الصفحة",
    markdown: "عرض بصيغة Markdown",
    edit: "تعديل هذه الصفحة",
    neighbours: "السابق والتالي",
    previous: "السابق",
    next: "التالي",
    default: "افتراضي",
    deprecated: "مهمل",
    pages_of: "صفحات",
    reading: "أنت تقرأ",
    newest: "انتقل إلى",
    missing: "الصفحة غير موجودة",
    missing_text: "لا توجد صفحة في هذا العنوان، وربما نُقلت.",
    home: "إلى الصفحة الأولى",
    script: "نسخ|تم النسخ|بحث|لا نتائج|هل تقصد",
};

const HEBREW: Words = Words {
    skip: "דילוג לתוכן",
    menu: "תפריט",
    close: "סגירה",
    search: "חיפוש",
    theme: "מעבר בין בהיר לכהה",
    announcement: "הודעה",
    dismiss: "הסתרה",
    product: "מדור",
    version: "גרסה",
    language: "שפה",
    pages: "דפים",
    sections: "מדורים",
    site: "אתר",
    breadcrumb: "נתיב",
    contents: "בדף זה",
    copy_page: "העתקת הדף",
    markdown: "הצגה כ־Markdown",
    edit: "עריכת הדף",
    neighbours: "הקודם והבא",
    previous: "הקודם",
    next: "הבא",
    default: "ברירת מחדל",
    deprecated: "מיושן",
    pages_of: "הדפים של",
    reading: "גרסת הדף:",
    newest: "מעבר אל",
    missing: "הדף לא נמצא",
    missing_text: "אין דף בכתובת הזאת. ייתכן שהועבר.",
    home: "אל הדף הראשון",
    script: "העתקה|הועתק|חיפוש|לא נמצא דבר|האם התכוונתם אל",
};

const FRENCH: Words = Words {
    skip: "Aller au contenu",
    menu: "Menu",
    close: "Fermer",
    search: "Rechercher",
    theme: "Passer du clair au sombre",
    announcement: "Annonce",
    dismiss: "Masquer",
    product: "Partie",
    version: "Version",
    language: "Langue",
    pages: "Pages",
    sections: "Rubriques",
    site: "Site",
    breadcrumb: "Fil d’Ariane",
    contents: "Sur cette page",
    copy_page: "Copier la page",
    markdown: "Voir en Markdown",
    edit: "Modifier cette page",
    neighbours: "Précédent et suivant",
    previous: "Précédent",
    next: "Suivant",
    default: "par défaut",
    deprecated: "obsolète",
    pages_of: "Pages de",
    reading: "Vous lisez",
    newest: "Aller à",
    missing: "Page introuvable",
    missing_text: "Il n’y a pas de page à cette adresse. Elle a peut-être été déplacée.",
    home: "Aller à la première page",
    script: "Copier|Copié|Rechercher|Aucun résultat|Vouliez-vous dire",
};

const GERMAN: Words = Words {
    skip: "Zum Inhalt",
    menu: "Menü",
    close: "Schließen",
    search: "Suchen",
    theme: "Zwischen hell und dunkel wechseln",
    announcement: "Mitteilung",
    dismiss: "Ausblenden",
    product: "Bereich",
    version: "Version",
    language: "Sprache",
    pages: "Seiten",
    sections: "Bereiche",
    site: "Website",
    breadcrumb: "Pfad",
    contents: "Auf dieser Seite",
    copy_page: "Seite kopieren",
    markdown: "Als Markdown ansehen",
    edit: "Diese Seite bearbeiten",
    neighbours: "Zurück und weiter",
    previous: "Zurück",
    next: "Weiter",
    default: "Standard",
    deprecated: "veraltet",
    pages_of: "Seiten von",
    reading: "Sie lesen",
    newest: "Zu",
    missing: "Seite nicht gefunden",
    missing_text: "Unter dieser Adresse gibt es keine Seite. Vielleicht ist sie umgezogen.",
    home: "Zur ersten Seite",
    script: "Kopieren|Kopiert|Suchen|Nichts gefunden|Meinten Sie",
};

const SPANISH: Words = Words {
    skip: "Ir al contenido",
    menu: "Menú",
    close: "Cerrar",
    search: "Buscar",
    theme: "Cambiar entre claro y oscuro",
    announcement: "Aviso",
    dismiss: "Ocultar",
    product: "Sección",
    version: "Versión",
    language: "Idioma",
    pages: "Páginas",
    sections: "Secciones",
    site: "Sitio",
    breadcrumb: "Ruta",
    contents: "En esta página",
    copy_page: "Copiar página",
    markdown: "Ver como Markdown",
    edit: "Editar esta página",
    neighbours: "Anterior y siguiente",
    previous: "Anterior",
    next: "Siguiente",
    default: "predeterminada",
    deprecated: "obsoleto",
    pages_of: "Páginas de",
    reading: "Está leyendo",
    newest: "Ir a",
    missing: "Página no encontrada",
    missing_text: "No hay ninguna página en esta dirección. Puede que se haya movido.",
    home: "Ir a la primera página",
    script: "Copiar|Copiado|Buscar|Sin resultados|Quizás quiso decir",
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
    fn the_script_is_told_as_many_words_in_every_language() {
        for tag in ["en", "ar", "he", "fr", "de", "es"] {
            let told = Words::of(tag).script.split('|').count();
            assert_eq!(told, 5, "{tag}");
        }
        assert_eq!(Words::of("fr-CA"), &FRENCH);
        assert_eq!(Words::of("uz"), &ENGLISH);
    }
}
