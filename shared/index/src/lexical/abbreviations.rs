//! Abbreviations that end in a full stop and are usually followed by the rest of their sentence.

use lectern_shared::model::language::Language;

/// Those that are hardly a word of any language, in lower case.
const ANYWHERE: &str = "\
    abb abs abschn abt abzgl al alin anm app approx apr art aufl aug avda bd bijv bkz bl.a blz bspw bzgl bzw ca cap cf cfr \
    ch co corp dec dept dez dgl dhr dipl dott dpto dr e.g ed eds einschl entspr eq esim etc etw evtl exkl f.eks feb \
    févr fig figs frl ggf ggfs gov hr hrsg i.e inc incl ing inkl insb insbes jan janv jf jh jr jul juil jun kap lfd \
    lt ltd ltda m.fl m.in mevr mio mr mrd mrs ms mt např no nos nov np nr núm oct odst okt p pag pagg pkt pp prof pág págs \
    rd ref resp rev réf sec sen sep sog sr sra sres srta st std str t.ex tab tel tlf tzn tzv tzw tägl u.s urspr \
    usf usw vgl vol vorm vs ziff zzgl éd örn";

/// Those that are words elsewhere, or units of numbers, by the languages in which they are abbreviations.
const IN_LANGUAGES: [(Language, &str); 11] = [
    (Language::English, "sept"),
    (Language::German, "allg bes best bsp fa fam geb gegr gem max min mind pos rn sept tsd verf"),
    (Language::French, "av boul chap coll dir env ex max min tél"),
    (Language::Spanish, "admón av cía dra ej lic máx mín tfno ud uds"),
    (Language::Italian, "all arch avv ecc geom max min sez sig tav"),
    (Language::Portuguese, "av dra ex exmo máx mín obs"),
    (Language::Danish, "fx kl maks mv stk"),
    (Language::Norwegian, "kl maks mv stk"),
    (Language::Swedish, "kl max tfn"),
    (Language::Hungarian, "ill kb ker pl stb sz"),
    (Language::Russian, "авг апр гл дек им кв нояб окт отд проф рис сент стр тел ул февр янв"),
];

/// Whether a word with a full stop behind it is an abbreviation in a text of this language.
pub(super) fn is_abbreviation(word: &str, language: Language) -> bool {
    let word = word.to_lowercase();
    let listed = |list: &str| list.split_ascii_whitespace().any(|known| known == word);
    let is_its_own = |(known, list): &(Language, &str)| *known == language && listed(list);
    is_dotted(&word) || listed(ANYWHERE) || IN_LANGUAGES.iter().any(is_its_own)
}

/// `z.B`, `a.m`, `u.a`: single letters with full stops between them.
fn is_dotted(word: &str) -> bool {
    word.contains('.')
        && word.split('.').all(|part| part.chars().count() == 1 && part.chars().all(char::is_alphabetic))
}
