/**
 * Passwords of 12 and more characters from the top of lists of leaked passwords, in lower case. Shorter ones are refused
 * anyway; patterns (a repetition, a run of keys, a word with a year) have rules of their own.
 */
export const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  `
  1q2w3e4r5t6y 1qaz2wsx3edc 1qazxsw23edc 1qaz1qaz1qaz qwerty123456 qwertyqwerty qwerty1234567 123456qwerty 1234qwerasdf
  1234qwerasdfzxcv qwer1234asdf qwerasdfzxcv asdfghjkl123 zaq12wsxcde3 zaq1xsw2cde3 q1w2e3r4t5y6 password1234 passw0rd1234
  password12345 password123456 passwordpassword mypassword123 newpassword123 changemenow1 changeme1234 letmein12345
  iloveyou1234 iloveyou12345 iloveyouforever iloveyousomuch iloveyoubaby iloveyou2much ilovemyself1 ilovemymother
  ilovemyfamily ilovemylife1 ilovejesus123 ilovechocolate ilovemusic123 ihateyou1234 forgetmenot1 forgetmenot123 trustno1trustno1
  welcome12345 welcome123456 admin1234567 administrator administrator1 adminadminadmin rootrootroot superadmin123 superuser1234
  correcthorsebatterystaple thisisapassword thisismypassword mypasswordis123 iamtheboss123
  whatever1234 nopassword12 nopassword123 secretsecret1 supersecret123 topsecret1234 verysecret123 opensesame123 abracadabra1
  abcdefg12345 abcdefgh1234 abc123456789 abcd12345678 abcde1234567 a123456789012 aa1234567890 aaa123456789 123456789abc
  1234567890ab 12345678abcd 123456789qwe 123456789asd 123abc123abc 123qweasdzxc qweasdzxc123 qweasd123456 123456abcdef
  asdasdasd123 asdf1234asdf asdfasdfasdf asdfghjkl1234 zxcvbnm12345 zxcvbnm123456 qazwsx123456 1password1234 p@ssw0rd1234
  p@ssword1234 pa$$word1234 pass1234pass passpasspass1 test1234test testtesttest testing12345 testpassword1 temppassword1
  temporary123 default12345 defaultpassword guestguest123 user12345678 useruseruser1 login1234567 loginlogin12 monkeymonkey1
  dragondragon1 dragonball123 dragonballz12 dragonballgt1 starwars1234 starwarsfan1 lordoftherings gandalf12345 harrypotter1
  harrypotter123 hogwarts1234 dumbledore123 hermione12345 voldemort1234 winteriscoming gameofthrones spiderman1234 superman12345
  batmanbatman1 batman123456 ironman12345 captainamerica wonderwoman123 incrediblehulk pokemon12345 pokemon123456 pikachu12345
  charizard1234 minecraft123 minecraft1234 fortnite1234 leagueoflegends worldofwarcraft counterstrike callofduty123 callofduty1234
  finalfantasy1 finalfantasy7 supermario123 playstation1 playstation2 playstation3 playstation123 nintendo1234 zeldazelda12
  metallica123 metallica1234 ironmaiden123 blinkblink182 linkinpark123 linkinpark1234 slipknot1234 greenday12345 nirvana12345
  michaeljackson jacksonfive12 justinbieber1 justinbieber123 onedirection1 onedirection123 taylorswift13 taylorswift1 britneyspears
  backstreetboys spongebob1234 spongebob123 mickeymouse1 mickeymouse123 winniethepooh hellokitty12 hellokitty123 tinkerbell12
  tinkerbell123 princess1234 princess12345 sunshine1234 sunshine12345 butterfly123 butterfly1234 chocolate123 chocolate1234
  strawberry12 strawberry123 rainbow12345 unicorn12345 lovelovelove loveyou12345 loveyouforever sweetheart12 sweetheart123
  babygirl1234 babygirl12345 babyblue1234 prettygirl12 beautiful123 beautiful1234 gorgeous1234 angelangel12 angels123456
  heavenly1234 jesuschrist1 jesuschrist123 jesusislord1 jesuslovesme godisgood123 godislove123 blessed12345 faithhopelove
  football1234 football12345 basketball12 basketball123 baseball1234 baseball12345 softball1234 volleyball12 soccer123456
  hockey123456 liverpoolfc1 liverpool123 liverpool1234 manchester12 manchester123 manchesterunited manutd123456 chelsea12345
  chelseafc123 arsenal12345 barcelona123 barcelona1234 realmadrid12 realmadrid123 juventus1234 cristiano123 ronaldo12345
  cowboys12345 steelers1234 yankees12345 lakers123456 patriots1234 redskins1234 broncos12345 raiders12345 newyork12345
  newyorkcity1 losangeles12 losangeles123 california12 california123 australia123 australia1234 argentina123 brasil123456
  germany12345 deutschland1 deutschland123 england12345 london123456 america12345 unitedstates december1234 november1234
  september123 september1234 october12345 summer123456 summer2020summer winter123456 spring123456 autumn123456 monday123456
  friday123456 jennifer1234 michelle1234 jessica12345 samantha1234 stephanie123 elizabeth123 elizabeth1234 alexander123
  alexander1234 alexandra123 christopher1 christopher123 christian123 christian1234 benjamin1234 jonathan1234 nicholas1234
  michael12345 matthew12345 anthony12345 charlie12345 charlotte123 victoria1234 veronica1234 francisco123 alejandro123
  sebastian123 estrella1234 contraseña123 contrasena123 contrasenia12 teamomucho12 teamomucho123 tequieromucho amorcito1234
  hallohallo12 hallo1234567 passwort1234 passwort12345 geheim123456 schatz123456 motdepasse12 motdepasse123 azerty123456
  azertyuiop12 azertyuiop123 azertyuiopqs bonjour12345 soleil123456 doudou123456 chouchou1234 senha1234567 qwertz123456
  qwertzuiop12 qwertzuiop123 parola123456 haslo1234567 zaq12wsx1234 polska123456 matrix123456 matrixreloaded neverending1
  neverforget1 nevergiveup1 nevergiveup123 hakunamatata carpediem123 carpediem1234 onetwothree1 onetwothreefour iamlegend123
  computer1234 computer12345 internet1234 internet12345 microsoft123 microsoft1234 windows12345 windowsxp123 facebook1234
  facebook12345 google123456 googlegoogle instagram123 linkedin1234 linkedin12345 myspace12345 youtube12345 samsung12345
  samsunggalaxy blackberry12 blackberry123 motorola1234 chevrolet123 chevrolet1234 mustang12345 mercedes1234 mercedesbenz
  lamborghini1 lamborghini123 ferrari12345 volkswagen12 volkswagen123 harleydavidson harley123456 kawasaki1234 yamaha123456
  masterofpuppets masterkey123 masterpassword mastermaster hunter123456 killer123456 thunder12345 thunderbird1 blackhawk123
  blackdragon1 darkangel123 darkknight12 phoenix12345 nightmare123 gangster1234 mafia1234567 money1234567 moneymoney12
  millionaire1 business1234 marketing123 company12345 office123456 manager12345 director1234 engineer1234 teacher12345
  student12345 doctor123456 lawyer123456 family123456 mother123456 father123456 brother12345 sister123456 bestfriend12
  bestfriends1 bestfriends123 bestfriend123 friendsforever friends12345 together4ever foreverandever foreveryoung foreveralone
  iwillsurvive allyouneedislove letitbeletitbe helloworld12 helloworld123 helloworld1234 hellohello12 hello1234567 goodmorning1
  goodmorning123 goodbye12345 thankyou1234 happybirthday happybirthday1 happyhappy12 merrychristmas jinglebells1 christmas123
  christmas1234 halloween123 halloween1234 valentine123
  motherfucker transformers supernatural international professional unbelievable intelligence philadelphia peanutbutter
  finalfantasy residentevil mortalkombat needforspeed devilmaycry4 greenlantern sanfrancisco massimiliano onedirection
  systemofadown hannahmontana cookiemonster cosmopolitan construction entertainment civilization sonyericsson justinbieber
  jamesbond007 ingodwetrust punksnotdead nightcrawler stratocaster chesterfield scandinavian ticketmaster edwardcullen
  leavemealone iseedeadpeople whosyourdaddy necronomicon morganstanley sonnenschein ichliebedich seniseviyorum
  weihnachtsbaum kartoffelpuffer frederiksberg internazionale organization relationship communication congratulations
  headquarters independence jacksonville championship thunderstorm skateboarding
  `
    .split(/\s+/)
    .filter((word) => word !== ""),
);

/** Words that become a password when repeated or combined with numbers or signs; too short alone. */
export const COMMON_WORDS: ReadonlySet<string> = new Set(
  `
  password passwort passwd passw pass motdepasse contrasena contraseña senha parola haslo secret geheim admin administrator root
  user username login guest test testing tester temp temporary default changeme change letmein welcome hello hallo bonjour
  hola iloveyou loveyou love lovely qwerty qwertz azerty qwertyuiop asdf asdfgh asdfghjkl zxcvbn zxcvbnm qazwsx abc abcd
  abcde abcdef abcdefg abcdefgh monkey dragon master shadow sunshine princess football baseball basketball soccer hockey
  superman batman spiderman starwars pokemon pikachu michael jordan jennifer jessica ashley daniel thomas andrew joshua
  matthew robert charlie george michelle nicole hannah anthony william alexander computer internet windows microsoft google
  facebook samsung apple android summer winter spring autumn fall monday tuesday wednesday thursday friday saturday sunday
  january february march april may june july august september october november december freedom whatever trustno cheese
  pepper ginger cookie chocolate banana orange flower butterfly rainbow angel heaven jesus christ killer hunter ranger
  mustang corvette ferrari porsche mercedes harley yankees lakers cowboys liverpool chelsea arsenal barcelona manchester
  london berlin paris newyork america england germany france brasil canada australia maggie buster bailey daisy lucky happy
  family friends forever money business company office manager server database demo example sample service gateway system
  name trust corp team group home work mail web site host page login signin account key word code super mega ultra
  best baby girl boy man men woman king queen prince lord god sex sexy hot cool nice good bad evil dark black white red blue
  green pink gold silver big little old new first last one two three four five six seven eight nine ten zero hundred
  dog cat puppy kitty bear tiger lion wolf eagle shark horse snake bird fish chicken rabbit turtle panda spider
  star stars moon sun sky fire ice water earth rain snow storm thunder light night day time life world dream magic
  game games gamer play player music rock metal guitar piano dance movie sport golf tennis racing cars bike
  john peter paul mark david james alex chris mike nick tom tim sam ben max leo adam eva anna maria sarah laura julia
  the you your and for are not all can who what why how this that with from have has was will just only
  gfhjkm ghbdtn vfrcbv yfnfif
  `
    .split(/\s+/)
    .filter((word) => word !== ""),
);

/** Sequences of neighbouring keys and of the alphabet, repeated to at least 256 characters. */
export const KEYBOARD_RUNS: readonly string[] = [
  ..."abcdefghijklmnopqrstuvwxyz 1234567890 0123456789 qwertyuiop qwertzuiop azertyuiop asdfghjkl zxcvbnm 1234567890-= "
    .trim()
    .split(" "),
  "qwertyuiopasdfghjklzxcvbnm",
  "qwertyuiop[]asdfghjkl;'zxcvbnm,./",
  "qwertzuiopasdfghjklyxcvbnm",
  "azertyuiopqsdfghjklmwxcvbn",
  "1234567890qwertyuiopasdfghjklzxcvbnm",
  "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/",
  "qazwsxedcrfvtgbyhnujmikolp",
  "zaq1xsw2cde3vfr4bgt5nhy6mju7",
  "!qaz@wsx#edc$rfv%tgb^yhn",
  "1q2w3e4r5t6y7u8i9o0p",
  "q1w2e3r4t5y6u7i8o9p0",
  "a1b2c3d4e5f6g7h8i9j0",
  "1a2b3c4d5e6f7g8h9i0j",
  "!@#$%^&*()_+",
].map((run) => run.repeat(Math.ceil(256 / run.length)));
