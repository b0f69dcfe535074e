//! Function words: what a question is asked with, not what it is about.

use std::{collections::HashMap, sync::LazyLock};

use lectern_shared::model::language::Language;

use super::fold::fold_accents;

/// The lists, in lower case.
const LISTS: [(Language, &str); 12] = [
    (
        Language::English,
        "a about above after again against all also am an and any are aren't as at be because been before being below \
         between both but by can cannot could couldn did didn do does doesn doing don dont down during each few for from \
         further had has have having he her here hers herself him himself his how i if in into is isn it its itself just \
         let many me more most much must my myself no nor not now of off often on once only or other ought our ours ourselves out over own \
         please same shall she should so some such tell than that the their theirs them themselves then there these they this those \
         through to too under until up upon very was we were what whats when where whether which while who whom whose why will \
         with within without would you your yours yourself",
    ),
    (
        Language::German,
        "ab aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin bis bist da dabei \
         dadurch daher damit dann darf das dass dein deine dem den denn der deren des dessen die dies diese diesem diesen \
         dieser dieses doch dort du durch ein eine einem einen einer eines er es etwas euch euer für gegen gibt hab habe \
         haben hat hatte hatten hier hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem \
         jeden jeder jedes jener jetzt kann kein keine keinem keinen keiner können konnte man mehr mein meine mich mir mit \
         muss müssen nach nicht nichts noch nun nur ob oder oft ohne sehr sein seine seinem seinen seiner seit sich sie sind so \
         soll sollen sollte sondern über um und uns unser unter viel viele vielen vom von vor während wann war waren warum was weil \
         welche welchem welchen welcher welches wem wen wenn wer werde werden wessen wie wieder wieso will wir wird wirst wo \
         wohin wollen worden wurde wurden würde würden zu zum zur zwischen",
    ),
    (
        Language::French,
        "a ai ainsi alors après as au aucun aussi autre aux avait avant avec avez avoir avons c ce ceci cela celle \
         celui ces cet cette ceux chaque chez ci combien comme comment d dans de depuis des deux dois doit donc dont du elle elles en \
         encore entre es est et étaient était être eu eux fait faire faut font fut il ils j je l la là le les lesquels leur \
         leurs lors lui m ma mais me même mes moi mon n ne ni nos notre nous on ont ou où par parce pas peu peut peuvent peux \
         plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si soit son sont sous sur t ta \
         te tes toi ton tous tout toute toutes très tu un une vers vos votre vous y",
    ),
    (
        Language::Spanish,
        "a al algo algunas algunos ante antes aquel aquella como cómo con contra cuál cuáles cual cuales cuándo cuando cuánta cuántas cuánto cuántos de \
         del desde donde dónde durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos esta está están \
         estas este esto estos estoy fue fueron ha había hace han hasta hay la las le les lo los más me mi mis mientras \
         mucho muy nada ni no nos nosotros o otra otras otro otros para pero poco por porque pues que qué quien quién \
         quienes se sea según ser si sí sido sin sobre son su sus también tan tanto te tiene tienen todo todos tu tú un \
         una unas uno unos usted y ya yo",
    ),
    (
        Language::Italian,
        "a ad agli ai al alla alle allo anche avere aveva c che chi ci come con contro cosa così cui d da dagli dai dal \
         dalla dalle de degli dei del dell della delle dello deve di dopo dove due e è ed era erano essere fa fino fra gli \
         ha hai hanno ho i il in io l la le lei li lo loro lui ma me mi mia mio molto ne negli nei nel nell nella nelle \
         nello no noi non nostro o ogni per perché perchè più può qual quale quali quando quanto quanti quella quelle quelli quello questa \
         queste questi questo qui se sei senza si sia siamo sono sta stata stato su sua sue sugli sui sul sulla sulle suo \
         suoi te ti tra tu tutti tutto un una uno vi voi",
    ),
    (
        Language::Portuguese,
        "a à ainda ao aos apenas aquela aquele aqui as às assim até cada com como contra da das de dela dele deles depois \
         desde do dos e é ela elas ele eles em entre era eram essa essas esse esses esta está estão estas este estes estou \
         eu foi foram há isso isto já lhe lhes mais mas me mesmo meu minha muito na não nas nem no nos nós nossa nosso num \
         numa o onde os ou para pela pelas pelo pelos per por porque porquê qual quais quando quanto quantos que quê quem são se seja \
         sem ser será seu seus só sobre sua suas também te tem têm ter teve tinha todo todos tu tua um uma umas uns você \
         vocês vos",
    ),
    (
        Language::Dutch,
        "aan af al alle als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een en er ge geen \
         haar had hadden heb hebben heeft hem het hier hij hoe hoeveel hun iets ik in is ja je jij jullie kan kon kunnen maar me meer \
         men met mij mijn moet na naar niet niets nog nu of om omdat ons ook op over reeds te tegen toch toen tot u uit \
         uw van veel voor waar waarom wanneer want waren was wat we welk welke wel werd wie wij wil worden wordt zal ze \
         zei zelf zich zij zijn zo zonder zou",
    ),
    (
        Language::Swedish,
        "alla allt att av blev bli blir de dem den denna deras dess dessa det detta dig din dina du där då efter ej eller \
         en er era ett från för ha hade han hans har henne hennes hon honom hur här i icke ingen inom inte jag ju kan kunde \
         man med mellan men mig min mina mot mycket många ni nu när någon något några och om oss på samma sedan sig sin sina sitta \
         själv skulle som så till under upp ut utan vad var vara varför varit vart vem vi vid vilka vilken vilket vilkas är åt över",
    ),
    (
        Language::Danish,
        "af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din disse dog du efter eller \
         en end er et for fra ham han hans har havde have hende hendes her hos hun hvad hvem hvilke hvilken hvilket hvis hvor hvordan hvorfor hvornår i ikke ind \
         jeg jer jo kan kunne man mange med meget men mig min mine mit mod ned noget nogle nu når og også om op os over på \
         selv sig sin sine sit skal skulle som sådan thi til ud under var vi vil ville vor være været",
    ),
    (
        Language::Norwegian,
        "alle at av bare begge ble blei bli blir blitt både da de deg dei deim deira dem den denne der dere deres det dette \
         di din disse ditt du eg ein eit eitt eller elles en enn er et ett etter for fordi fra før ha hadde han hans har \
         henne hennes her hun hva hvem hver hvilke hvilken hvilket hvis hvor hvordan hvorfor i ikke inn ja jeg kan kom kunne man mange med meg meget mellom men mer min \
         mitt mot mye må ned no noe noen nå når og også om opp oss over på samme seg selv si sia siden sin sitt skal skulle \
         slik som så til under ut uten var vart ved vi vil ville være vært vår",
    ),
    (
        Language::Finnish,
        "ei eivät emme en että he heidän heille hän hänen häntä ja joka jonka jos jossa jota joten jotka kanssa keitä ken \
         ketä koska kuin kuinka kuka kun me meidän meille mihin mikä miksi millainen milloin millä minkä minun minä missä mistä mitkä mitä mukaan mutta myös ne \
         niiden niin niitä noin nuo nyt nämä ole olen olet oli olivat olla olleet ollut on ovat se sekä sen siinä siitä \
         sillä sinun sinä sitä tai te teidän tuo tämä tämän tätä vaan vai vaikka voi voivat",
    ),
    (
        Language::Russian,
        "а без более больше будет будто бы был была были было быть в вам вас ведь во вот все всё всего всех вы где да даже \
         для до его ее её если есть еще ещё ж же за здесь и из или им иногда их к как какая какие какой каков когда конечно \
         которая которого которой которые который кто куда ли лучше между меня мне много может можно мой моя мы на над надо \
         нас не него нее неё ней нельзя нет ни них но ну о об один он она они оно от перед по под после почему при про раз \
         с сам свою себе себя сейчас сколько со так такой там тебя тем то тогда того тоже только том тот ты у уже хотя чего чей чем через \
         что чтобы эта эти это этого этой этом этот эту я",
    ),
];

/// Words of the lists that English texts have too, as words, names or abbreviations, beside those that English itself lists. ("im" is what
/// is left of "I'm".)
const ENGLISH_LOOKALIKES: &str = "ad ai al ante att bare ben bin com come comment con dan del den die dies dig din dog \
     door dos dove due ed eg em en end er era fa font fra fut ha ham hans hat hay hem hoe hun im inn ins io jo ken la las li lo \
     los ma man manga mange mas med meg men met mi mia mina mine mir mis mit mod moi na nada nas ned nos nun oft om op os par para pas \
     per plus poco pour reeds sea sera si sin sine sit son sono sous sur sus ta tan te ti til till ton tot tout ud um un ut \
     van var vi vid ville vos want war";

/// Every word of the lists, with and without its accents, and the set of the languages that list it.
static WORDS: LazyLock<HashMap<String, StopLanguages>> = LazyLock::new(|| {
    let mut words = HashMap::<String, StopLanguages>::new();
    for (index, (_, list)) in LISTS.iter().enumerate() {
        for word in list.split_ascii_whitespace() {
            let mut unaccented = String::with_capacity(word.len());
            fold_accents(word, &mut unaccented);
            for form in [word.to_owned(), unaccented] {
                words.entry(form).or_default().0 |= 1 << index;
            }
        }
    }
    let letters = ('a'..='z').map(String::from);
    for word in ENGLISH_LOOKALIKES.split_ascii_whitespace().map(str::to_owned).chain(letters) {
        if let Some(listed) = words.get_mut(&word) {
            listed.0 |= LOOKALIKE;
        }
    }
    words
});

/// The bit of a word that an English text may well have, whichever language it is a function word of: a single letter is a name or a
/// number there.
const LOOKALIKE: u16 = 1 << 15;

/// The function words of a language, in lower case; none where there is no list.
pub fn function_words(language: Language) -> impl Iterator<Item = &'static str> {
    let lists = LISTS.iter().filter(move |(listed, _)| *listed == language);
    lists.flat_map(|(_, list)| list.split_ascii_whitespace())
}

/// The languages in which a word is a function word: a bit for each list, and one for lookalikes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StopLanguages(u16);

impl StopLanguages {
    /// Looks up a lower-case word.
    pub(super) fn of(word: &str) -> Self {
        WORDS.get(word).copied().unwrap_or_default()
    }

    /// A function word in `language` and in no other.
    pub(super) fn only(language: Language) -> Self {
        let listed = LISTS.iter().position(|(listed, _)| *listed == language);
        listed.map_or_else(Self::default, |index| Self(1 << index))
    }

    /// Whether the word is a function word in `language`.
    pub(super) fn contains(self, language: Language) -> bool {
        LISTS.iter().enumerate().any(|(index, (listed, _))| *listed == language && self.0 & (1 << index) != 0)
    }

    /// Whether it is a function word in `language` alone, and no word of English texts besides.
    pub(super) fn is_only(self, language: Language) -> bool {
        self.0.is_power_of_two() && self.contains(language)
    }

    /// Whether a text with the word is rather in `language` than in the `usual` one. Words that English texts have as well tell nothing
    /// of any other language.
    fn tells(self, language: Language, usual: Language) -> bool {
        let is_english = self.contains(Language::English) || self.0 & LOOKALIKE != 0;
        self.contains(language) && !self.contains(usual) && (language == Language::English || !is_english)
    }
}

/// Counts, for each language, the function words that a text uses.
#[derive(Debug, Default)]
pub(super) struct LanguageVotes([u32; LISTS.len()]);

impl LanguageVotes {
    /// Counts one word.
    pub(super) fn add(&mut self, word: StopLanguages) {
        for (index, votes) in self.0.iter_mut().enumerate() {
            *votes += u32::from(word.0 & (1 << index) != 0);
        }
    }

    /// The language with the most votes. The `preferred` one needs one vote and wins ties, another needs
    /// `least`; further ties go to the first in the lists.
    pub(super) fn best(&self, preferred: Option<Language>, least: u32) -> Option<Language> {
        let mut best: Option<(u32, bool, Language)> = None;
        for (votes, (language, _)) in self.0.iter().zip(LISTS) {
            let wanted = preferred == Some(language);
            let enough = *votes >= if wanted { 1 } else { least };
            if enough && best.is_none_or(|(most, was_wanted, _)| (*votes, wanted) > (most, was_wanted)) {
                best = Some((*votes, wanted, language));
            }
        }
        best.map(|(_, _, language)| language)
    }
}

/// The function words of a text of which it is not known in which language it is.
#[derive(Debug, Default)]
pub(super) struct FunctionWords {
    /// How many words the text has, numbers not counted.
    words: u32,
    votes: LanguageVotes,
    /// Each function word once.
    seen: HashMap<String, StopLanguages>,
}

impl FunctionWords {
    /// Counts a lower-case word of the text.
    pub(super) fn add(&mut self, word: &str) {
        if !word.starts_with(char::is_alphabetic) {
            return;
        }
        self.words += 1;
        let listed = StopLanguages::of(word);
        if listed != StopLanguages::default() {
            self.votes.add(listed);
            self.seen.entry(word.to_owned()).or_insert(listed);
        }
    }

    /// The language of the text, of which trigrams have made a `guess`. The `usual` one needs one function word. Another has to have more
    /// of them, and to be told for sure: a foreign word or two stand in many texts ("cost per unit", "due").
    pub(super) fn language(&self, usual: Language, guess: Language) -> Option<Language> {
        let most = LISTS
            .iter()
            .zip(self.votes.0)
            .filter(|((language, _), votes)| {
                *votes > 0 && (*language == usual || self.tell(*language, *votes, usual, guess == *language))
            })
            // Of equals the first.
            .rev()
            .max_by_key(|((language, _), votes)| (*votes, *language == usual));
        most.map(|((language, _), _)| *language)
    }

    /// Whether one of them tells the language, and that is not by chance: they are a quarter of all words, and several or one with an
    /// accent. Where trigrams say the same, half as many are enough, or one that is longer than those in names ("Rio de Janeiro").
    fn tell(&self, language: Language, votes: u32, usual: Language, is_guessed: bool) -> bool {
        let own = self.seen.iter().filter(|(_, listed)| listed.contains(language));
        let are_several = own.clone().nth(1).is_some();
        let mut telling = own.filter(|(_, listed)| listed.tells(language, usual));
        let part = if is_guessed { 8 } else { 4 };
        votes.saturating_mul(part) >= self.words
            && telling.any(|(word, _)| are_several || !word.is_ascii() || (is_guessed && word.len() > 2))
    }
}
